# Loop over a tensor of which the length is not known.
# refused: building
# got: 'x:0' float32[?, 3]
# expected: cannot be iterated over
# fix: hr.unstack

import headrace as hr

x = hr.placeholder(hr.float32, [None, 3], name="x")
total = sum(row for row in x)  # the mistake
