# Let a loop variable grow.
# refused: building
# got: leaves it with shape [2]
# expected: enters an iteration with shape [1]
# fix: shape_invariants

import headrace as hr

x = hr.zeros([1], name="x")
y = hr.while_loop(lambda v: hr.size(v) < 9, lambda v: hr.concat([v, v], 0), [x])  # the mistake
