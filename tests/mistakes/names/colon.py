# Name an operation like a tensor.
# refused: building
# got: got 'x:0'
# expected: a name is a string
# fix: without a colon

import headrace as hr

x = hr.constant(1.0, name="x:0")  # the mistake
