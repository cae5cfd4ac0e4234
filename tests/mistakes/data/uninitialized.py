# Use an iterator that was not initialized.
# refused: step: another step may initialize it
# got: has not been initialized
# expected: before the first get_next()
# fix: run its initializer

import headrace as hr

iterator = hr.data.Dataset.range(3).make_initializable_iterator()
element = iterator.get_next()  # the mistake
with hr.Session() as session:
    session.run(element)
