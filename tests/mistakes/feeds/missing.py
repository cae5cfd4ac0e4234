# Leave out a feed.
# refused: step: feeds belong to a step
# got: x:0 float32[?, 3]
# expected: placeholders, which the step needs
# fix: a value must be fed

import headrace as hr

x = hr.placeholder(hr.float32, [None, 3], name="x")  # the mistake
y = x * 2.0
with hr.Session() as session:
    session.run(y)
