# Give a constant more values than its shape has.
# refused: building
# got: shape [3]
# expected: [2]
# fix: does not fill

import headrace as hr

x = hr.constant([1.0, 2.0, 3.0], shape=[2])  # the mistake
