# Misspell an option of a step.
# refused: step: options belong to a step
# got: 'timeout'
# expected: it has
# fix: timeout_in_ms

import headrace as hr

x = hr.constant(1.0)
with hr.Session() as session:
    session.run(x, options=hr.RunOptions(timeout=100))  # the mistake
