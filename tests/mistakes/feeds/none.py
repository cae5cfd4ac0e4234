# Feed nothing.
# refused: step: feeds belong to a step
# got: None
# expected: which is float32[2]
# fix: numbers, booleans and strings

import headrace as hr

x = hr.placeholder(hr.float32, [2], name="x")
with hr.Session() as session:
    session.run(x * 2.0, {x: None})  # the mistake
