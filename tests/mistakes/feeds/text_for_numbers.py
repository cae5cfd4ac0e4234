# Feed text where numbers are expected.
# refused: step: feeds belong to a step
# got: ['1.0', 'two']
# expected: which is float32[2]
# fix: is not of dtype float32

import headrace as hr

x = hr.placeholder(hr.float32, [2], name="x")
with hr.Session() as session:
    session.run(x * 2.0, {x: ["1.0", "two"]})  # the mistake
