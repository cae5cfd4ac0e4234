# Reuse a variable that was never made.
# refused: building
# got: 'layer/w'
# expected: that hr.get_variable made
# fix: reuse=hr.AUTO_REUSE

import headrace as hr

with hr.variable_scope("layer", reuse=True):
    w = hr.get_variable("w", [3, 4])  # the mistake
