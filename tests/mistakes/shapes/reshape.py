# Reshape to another number of elements.
# refused: building
# got: 25088 elements of shape [32, 28, 28]
# expected: takes 24576
# fix: -1 stands for one size

import headrace as hr

x = hr.zeros([32, 28, 28], name="x")
y = hr.reshape(x, [32, 768])  # the mistake
