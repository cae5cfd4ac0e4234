# Decide by a number.
# refused: building
# got: got int32
# expected: pred must be bool
# fix: convert it with hr.cast

import headrace as hr

n = hr.placeholder(hr.int32, [], name="n")
y = hr.cond(n, lambda: 1.0, lambda: 2.0)  # the mistake
