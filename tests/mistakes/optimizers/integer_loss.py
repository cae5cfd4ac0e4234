# Minimize an integer.
# refused: building
# got: int32[]
# expected: a loss must be floating
# fix: convert it with hr.cast

import headrace as hr

v = hr.Variable([1.0], name="v")
loss = hr.cast(hr.reduce_sum(v * v), hr.int32)
step = hr.train.GradientDescentOptimizer(0.1).minimize(loss)  # the mistake
