# Split an axis into parts that do not fit.
# refused: building
# got: axis 1 of <Tensor 'x:0' float32[2, 10]>
# expected: 3 parts of one size
# fix: pass a list of sizes

import headrace as hr

x = hr.zeros([2, 10], name="x")
a, b, c = hr.split(x, 3, axis=1)  # the mistake
