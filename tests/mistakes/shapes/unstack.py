# Unstack an axis of unknown size.
# refused: building
# got: float32[?, 3]
# expected: the size of axis 0
# fix: pass num=

import headrace as hr

x = hr.placeholder(hr.float32, [None, 3], name="x")
rows = hr.unstack(x)  # the mistake
