# State a shape that cannot be.
# refused: building
# got: [?, 4]
# expected: [?, 3]
# fix: are incompatible

import headrace as hr

x = hr.placeholder(hr.float32, [None, 3], name="x")
x.set_shape([None, 4])  # the mistake
