# Take a row that is not there.
# refused: building
# got: index 2
# expected: of [2, 3]
# fix: out of range for axis 0

import headrace as hr

x = hr.zeros([2, 3], name="x")
y = x[2]  # the mistake
