# Take more elements than there are.
# refused: step: elements end at run time
# got: no elements left
# expected: OutOfRangeError
# fix: repeat()

import headrace as hr

element = hr.data.Dataset.range(2).make_one_shot_iterator().get_next()  # the mistake
with hr.Session() as session:
    for _ in range(3):
        session.run(element)
