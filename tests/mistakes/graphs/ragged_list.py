# Make a tensor of rows of different lengths.
# refused: building
# got: [[1, 2, 3], [4, 5]]
# expected: rows of one length
# fix: pad the shorter ones

import headrace as hr

x = hr.constant([[1, 2, 3], [4, 5]])  # the mistake
