# Name an axis twice in a permutation.
# refused: building
# got: perm [0, 2, 2]
# expected: permutation of 0 to 2
# fix: is no permutation

import headrace as hr

x = hr.zeros([2, 3, 4], name="x")
y = hr.transpose(x, [0, 2, 2])  # the mistake
