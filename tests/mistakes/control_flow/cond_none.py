# Return nothing from a branch.
# refused: building
# got: false_fn returned None
# expected: return
# fix: tensors

import headrace as hr

x = hr.placeholder(hr.float32, [], name="x")
y = hr.cond(x > 0.0, lambda: x, lambda: None)  # the mistake
