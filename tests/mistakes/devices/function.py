# Return a number from a device function.
# refused: building
# got: got 3
# expected: must return the name of a device
# fix: an empty string

import headrace as hr

with hr.device(lambda op: 3):
    x = hr.constant(1.0)  # the mistake
