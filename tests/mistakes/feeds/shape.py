# Feed a batch where one example is expected.
# refused: step: feeds belong to a step
# got: [32, 784]
# expected: has shape [784]
# fix: a placeholder of shape [?, 784]

import numpy as np

import headrace as hr

x = hr.placeholder(hr.float32, [784], name="x")
with hr.Session() as session:
    session.run(x * 2.0, {x: np.zeros([32, 784])})  # the mistake
