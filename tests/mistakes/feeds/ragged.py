# Feed rows of different lengths.
# refused: step: feeds belong to a step
# got: [[1, 2, 3], [4, 5]]
# expected: rows of one length
# fix: pad the shorter ones

import headrace as hr

x = hr.placeholder(hr.int32, [None, None], name="x")
with hr.Session() as session:
    session.run(x * 2, {x: [[1, 2, 3], [4, 5]]})  # the mistake
