# Let a loop variable change its dtype.
# refused: building
# got: leaves it as float32
# expected: enters an iteration as int32
# fix: cast it in the body

import headrace as hr

n = hr.constant(0, name="n")
y = hr.while_loop(lambda i: i < 9, lambda i: hr.cast(i, hr.float32) + 0.5, [n])  # the mistake
