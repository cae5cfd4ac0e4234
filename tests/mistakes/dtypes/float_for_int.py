# Add a fraction to integers.
# refused: building
# got: 0.5 is float32
# expected: expected int32
# fix: hr.cast

import headrace as hr

x = hr.zeros([2], hr.int32, name="x")
y = x + 0.5  # the mistake
