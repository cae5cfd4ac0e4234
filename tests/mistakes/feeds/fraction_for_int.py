# Feed fractions where integers are expected.
# refused: step: feeds belong to a step
# got: 2.5 is float32
# expected: expected int32
# fix: convert it

import headrace as hr

n = hr.placeholder(hr.int32, [], name="n")
with hr.Session() as session:
    session.run(n * 2, {n: 2.5})  # the mistake
