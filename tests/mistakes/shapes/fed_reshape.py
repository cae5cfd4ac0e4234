# Reshape what turns out not to fit.
# refused: step: the size is fed
# got: 10 elements of shape [10]
# expected: shape [-1, 4]
# fix: do not fit

import numpy as np

import headrace as hr

x = hr.placeholder(hr.float32, [None], name="x")
y = hr.reshape(x, [-1, 4])  # the mistake
with hr.Session() as session:
    session.run(y, {x: np.zeros(10)})
