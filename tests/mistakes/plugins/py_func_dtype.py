# Return another dtype from a Python function than was stated.
# refused: step: the function runs then
# got: returned is bool
# expected: expected float32
# fix: '<lambda>'

import headrace as hr

x = hr.placeholder(hr.float32, [2], name="x")
y = hr.py_func(lambda v: v > 0, [x], hr.float32)  # the mistake
with hr.Session() as session:
    session.run(y, {x: [1.0, -1.0]})
