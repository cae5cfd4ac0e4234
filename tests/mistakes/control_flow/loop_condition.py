# Let the condition of a loop be a number.
# refused: building
# got: got int32
# expected: a bool tensor
# fix: compare, as in i < n

import headrace as hr

y = hr.while_loop(lambda i: 9 - i, lambda i: i + 1, [0])  # the mistake
