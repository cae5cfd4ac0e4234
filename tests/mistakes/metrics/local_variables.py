# Initialize global variables only.
# refused: step: another step may initialize them
# got: accuracy/count
# expected: are not initialized
# fix: hr.local_variables_initializer()

import headrace as hr

accuracy, update = hr.metrics.accuracy([1, 2], [1, 3])
with hr.Session() as session:
    session.run(hr.global_variables_initializer())
    session.run(update)  # the mistake
