# Decide by a Python value.
# refused: building
# got: a Python bool
# expected: when the graph runs
# fix: use Python's own 'if'

import headrace as hr

x = hr.placeholder(hr.float32, [], name="x")
y = hr.cond(True, lambda: x, lambda: -x)  # the mistake
