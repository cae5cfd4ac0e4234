# Decide by a vector.
# refused: building
# got: got shape [3]
# expected: pred must be a scalar
# fix: hr.where

import headrace as hr

x = hr.placeholder(hr.float32, [3], name="x")
y = hr.cond(x > 0.0, lambda: x, lambda: -x)  # the mistake
