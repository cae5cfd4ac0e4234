# Map a function over a scalar.
# refused: building
# got: got a scalar
# expected: a first axis to loop over
# fix: elems must have

import headrace as hr

x = hr.constant(1.0, name="x")
y = hr.map_fn(lambda e: e * 2.0, x)  # the mistake
