# Write a device without its index.
# refused: building
# got: '/job:/task:0' is not a device name
# expected: expected parts of
# fix: /job:<name>/task:<index>/device:<kind>:<index>

import headrace as hr

with hr.device("/job:/task:0"):  # the mistake
    x = hr.constant(1.0)
