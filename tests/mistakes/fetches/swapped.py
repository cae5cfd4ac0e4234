# Exchange fetches and feeds.
# refused: step: feeds belong to a step
# got: got Tensor
# expected: a dict of values by tensor
# fix: feed_dict must be

import headrace as hr

x = hr.placeholder(hr.float32, [], name="x")
y = x * 2.0
with hr.Session() as session:
    session.run({x: 1.0}, y)  # the mistake
