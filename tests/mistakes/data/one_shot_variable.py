# Use a variable in a one-shot iterator.
# refused: building
# got: 'v'
# expected: one-shot iterator
# fix: make_initializable_iterator()

import headrace as hr

v = hr.Variable(1, dtype=hr.int64, name="v")
iterator = hr.data.Dataset.range(3).map(lambda n: n + v).make_one_shot_iterator()  # the mistake
