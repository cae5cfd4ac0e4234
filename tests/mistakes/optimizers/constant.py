# Optimize what is no variable.
# refused: building
# got: got <Tensor 'w:0' float32[3]>
# expected: changes variables
# fix: make it with hr.Variable

import headrace as hr

w = hr.ones([3], name="w")
optimizer = hr.train.GradientDescentOptimizer(0.1)
step = optimizer.minimize(hr.reduce_sum(w * w), var_list=[w])  # the mistake
