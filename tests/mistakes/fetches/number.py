# Fetch a number.
# refused: step: fetches belong to a step
# got: cannot fetch 0.5
# expected: expected a tensor, operation, variable or name
# fix: got float

import headrace as hr

with hr.Session() as session:
    session.run([hr.constant(1.0), 0.5])  # the mistake
