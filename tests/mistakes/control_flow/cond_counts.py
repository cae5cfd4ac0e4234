# Let branches return different numbers of tensors.
# refused: building
# got: a tuple of 2 and Tensor
# expected: the same structure
# fix: must return

import headrace as hr

x = hr.placeholder(hr.float32, [], name="x")
y = hr.cond(x > 0.0, lambda: (x, x), lambda: x)  # the mistake
