# Let branches return different dtypes.
# refused: building
# got: float32 in one branch and int32 in the other
# expected: expected one dtype
# fix: convert it with hr.cast

import headrace as hr

x = hr.placeholder(hr.float32, [], name="x")
y = hr.cond(x > 0.0, lambda: x, lambda: 0)  # the mistake
