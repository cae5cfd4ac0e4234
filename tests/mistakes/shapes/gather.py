# Look up a row that is not there.
# refused: step: the indices are fed
# got: index 100
# expected: [0, 100)
# fix: out of range

import headrace as hr

table = hr.zeros([100, 8], name="table")
ids = hr.placeholder(hr.int32, [None], name="ids")
rows = hr.gather(table, ids)  # the mistake
with hr.Session() as session:
    session.run(rows, {ids: [3, 100]})
