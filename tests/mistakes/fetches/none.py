# Fetch what a function forgot to return.
# refused: step: fetches belong to a step
# got: got NoneType
# expected: expected a tensor, operation, variable or name
# fix: return nothing

import headrace as hr


def train(x):
    hr.reduce_sum(x)


x = hr.constant([1.0, 2.0])
with hr.Session() as session:
    session.run(train(x))  # the mistake
