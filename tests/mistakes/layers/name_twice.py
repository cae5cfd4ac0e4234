# Give two layers one name.
# refused: building
# got: 'hidden/kernel' exists already
# expected: reuse=True
# fix: choose another name

import headrace as hr

x = hr.placeholder(hr.float32, [None, 4])
h = hr.layers.dense(x, 4, name="hidden")
y = hr.layers.dense(h, 4, name="hidden")  # the mistake
