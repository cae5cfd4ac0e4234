# Add vectors that turn out to have different sizes.
# refused: step: the sizes are fed
# got: float32[3]
# expected: expected equal sizes or 1
# fix: float32[2]

import headrace as hr

x = hr.placeholder(hr.float32, [None], name="x")
y = hr.placeholder(hr.float32, [None], name="y")
z = x + y  # the mistake
with hr.Session() as session:
    session.run(z, {x: [1.0, 2.0], y: [1.0, 2.0, 3.0]})
