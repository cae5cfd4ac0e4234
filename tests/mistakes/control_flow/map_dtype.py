# Let map_fn change the dtype without saying so.
# refused: building
# got: got int32
# expected: holds float32
# fix: dtype= of

import headrace as hr

x = hr.zeros([3], name="x")
y = hr.map_fn(lambda e: hr.cast(e, hr.int32), x)  # the mistake
