# Multiply by an object that is no data.
# refused: building
# got: {'weights': 1.0}
# expected: numbers, booleans and strings
# fix: tensors are made of

import headrace as hr

x = hr.zeros([2, 2], name="x")
y = hr.matmul(x, {"weights": 1.0})  # the mistake
