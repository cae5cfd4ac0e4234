# Divide by 0 where that is refused.
# refused: step: the values are fed
# got: 1 infinity among the 2 numbers
# expected: finite numbers
# fix: feed of x:0 from 0 to 1

import headrace as hr

x = hr.placeholder(hr.float32, [2], name="x")
y = 1.0 / x  # the mistake
with hr.Session(config=hr.Config(check_numerics=True)) as session:
    session.run(y, {x: [1.0, 0.0]})
