# Give feeds as a list.
# refused: step: feeds belong to a step
# got: got list
# expected: a dict of values by tensor
# fix: feed_dict must be

import headrace as hr

x = hr.placeholder(hr.float32, [2], name="x")
with hr.Session() as session:
    session.run(x * 2.0, [[1.0, 2.0]])  # the mistake
