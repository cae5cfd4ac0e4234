# Multiply matrices whose inner sizes differ.
# refused: building
# got: 784 of a [?, 784]
# expected: 10 of b [10, 784]
# fix: transpose_b=True

import headrace as hr

x = hr.placeholder(hr.float32, [None, 784], name="x")
w = hr.zeros([10, 784], name="w")
y = hr.matmul(x, w)  # the mistake
