# Let operations wait for a number.
# refused: building
# got: got 1.0
# expected: expected an operation, tensor or variable
# fix: leave it out

import headrace as hr

with hr.control_dependencies([1.0]):  # the mistake
    x = hr.constant(1.0)
