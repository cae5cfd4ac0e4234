# Reuse a variable with another dtype.
# refused: building
# got: float32
# expected: expected float64
# fix: to share it

import headrace as hr

with hr.variable_scope("layer", reuse=hr.AUTO_REUSE):
    w = hr.get_variable("w", [3], hr.float32)
    again = hr.get_variable("w", [3], hr.float64)  # the mistake
