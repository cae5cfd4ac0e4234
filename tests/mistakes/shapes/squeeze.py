# Squeeze an axis whose size is not 1.
# refused: building
# got: axis 1 of shape [2, 3] has size 3
# expected: only axes of size 1 go
# fix: all of them without axis=

import headrace as hr

x = hr.zeros([2, 3], name="x")
y = hr.squeeze(x, axis=[1])  # the mistake
