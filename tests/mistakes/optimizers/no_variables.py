# Minimize a loss that depends on no variable.
# refused: building
# got: no trainable variables
# expected: make some with hr.Variable
# fix: or pass var_list

import headrace as hr

x = hr.placeholder(hr.float32, [3], name="x")
step = hr.train.GradientDescentOptimizer(0.1).minimize(hr.reduce_sum(x))  # the mistake
