# Add a number to text.
# refused: building
# got: y: 1
# expected: dtype string
# fix: is not of dtype

import headrace as hr

x = hr.constant(["a", "b"], name="x")
y = x + 1  # the mistake
