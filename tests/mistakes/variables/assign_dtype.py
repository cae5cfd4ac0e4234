# Assign a value of another dtype.
# refused: building
# got: the value is int32
# expected: holds float32
# fix: convert it with hr.cast

import headrace as hr

w = hr.Variable(hr.zeros([3]), name="w")
change = w.assign(hr.zeros([3], hr.int32))  # the mistake
