# Connect a layer to features whose number is not known.
# refused: building
# got: got shape [?, ?]
# expected: the last dimension of its input
# fix: use set_shape

import headrace as hr

x = hr.placeholder(hr.float32, [None, None], name="x")
y = hr.layers.dense(x, 10)  # the mistake
