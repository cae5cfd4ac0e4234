# Forget the variables that the optimizer makes.
# refused: step: another step may initialize it
# got: 'beta1_power'
# expected: is not initialized
# fix: called after the last variable was made

import headrace as hr

v = hr.Variable([1.0], name="v")
init = hr.global_variables_initializer()
step = hr.train.AdamOptimizer(0.1).minimize(hr.reduce_sum(v * v))
with hr.Session() as session:
    session.run(init)
    session.run(step)  # the mistake
