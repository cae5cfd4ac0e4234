# Misspell the padding of a layer.
# refused: building
# got: got 'smae'
# expected: valid, same
# fix: padding must be one of

import headrace as hr

x = hr.placeholder(hr.float32, [None, 28, 28, 1], name="x")
y = hr.layers.conv2d(x, 32, 5, padding="smae")  # the mistake
