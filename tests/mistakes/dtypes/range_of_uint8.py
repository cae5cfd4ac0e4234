# Keep a number in a dtype that it does not fit.
# refused: building
# got: 300
# expected: 0 to 255
# fix: does not fit uint8

import headrace as hr

x = hr.constant(300, hr.uint8)  # the mistake
