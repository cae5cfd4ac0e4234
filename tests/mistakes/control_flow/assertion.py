# Break an assertion of the program.
# refused: step: the values are fed
# got: [0.1 -0.1]
# expected: Condition x > 0
# fix: rates must be positive

import headrace as hr

x = hr.placeholder(hr.float32, [None], name="x")
check = hr.assert_positive(x, message="rates must be positive")  # the mistake
with hr.control_dependencies([check]), hr.Session() as session:
    session.run(hr.identity(x), {x: [0.1, -0.1]})
