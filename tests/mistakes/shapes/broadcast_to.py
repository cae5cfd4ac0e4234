# Broadcast to a shape that does not fit.
# refused: building
# got: shape [3]
# expected: to [3, 2]
# fix: does not broadcast

import headrace as hr

x = hr.zeros([3], name="x")
y = hr.broadcast_to(x, [3, 2])  # the mistake
