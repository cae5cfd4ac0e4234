# Reuse a variable with another shape.
# refused: building
# got: [3, 4]
# expected: expected [4, 3]
# fix: to share it

import headrace as hr

with hr.variable_scope("layer", reuse=hr.AUTO_REUSE):
    w = hr.get_variable("w", [3, 4])
    again = hr.get_variable("w", [4, 3])  # the mistake
