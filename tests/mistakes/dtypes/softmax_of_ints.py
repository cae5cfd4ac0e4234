# Take the softmax of integers.
# refused: building
# got: got int32
# expected: must be floating
# fix: convert it with hr.cast

import headrace as hr

x = hr.zeros([2, 3], hr.int32, name="x")
y = hr.nn.softmax(x)  # the mistake
