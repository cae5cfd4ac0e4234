# Combine numbers as if they were truth values.
# refused: building
# got: got float32
# expected: x must be bool
# fix: convert it with hr.cast

import headrace as hr

x = hr.zeros([2], name="x")
y = hr.logical_and(x, x)  # the mistake
