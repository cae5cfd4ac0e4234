# Raise an error in a Python function of a step.
# refused: step: the function runs then
# got: KeyError: 'no such user'
# expected: the Python function
# fix: 'check' failed

import headrace as hr


def check(v):
    raise KeyError("no such user")


x = hr.placeholder(hr.float32, [2], name="x")
y = hr.py_func(check, [x], hr.float32)  # the mistake
with hr.Session() as session:
    session.run(y, {x: [1.0, -1.0]})
