# Minimize a loss by variables that it does not depend on.
# refused: building
# got: no gradient reaches any of the variables v
# expected: does the loss depend on them
# fix: by differentiable operations

import headrace as hr

v = hr.Variable([1.0], name="v")
x = hr.placeholder(hr.float32, [3], name="x")
step = hr.train.AdamOptimizer(0.1).minimize(hr.reduce_sum(x), var_list=[v])  # the mistake
