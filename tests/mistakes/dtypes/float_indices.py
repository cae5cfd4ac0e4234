# Look up rows by float numbers.
# refused: building
# got: got float32
# expected: int32 or int64
# fix: convert it with hr.cast

import headrace as hr

table = hr.zeros([100, 8], name="table")
rows = hr.gather(table, [1.0, 2.0])  # the mistake
