# Feed a tensor instead of a value.
# refused: step: feeds belong to a step
# got: a tensor for 'x:0'
# expected: feeds are values
# fix: fetch it first

import headrace as hr

x = hr.placeholder(hr.float32, [2], name="x")
value = hr.constant([1.0, 2.0], name="value")
with hr.Session() as session:
    session.run(x * 2.0, {x: value})  # the mistake
