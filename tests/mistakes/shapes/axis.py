# Reduce an axis that is not there.
# refused: building
# got: axis 2
# expected: expected -2 to 1
# fix: is out of range

import headrace as hr

x = hr.zeros([2, 3], name="x")
y = hr.reduce_mean(x, axis=2)  # the mistake
