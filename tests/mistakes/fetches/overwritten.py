# Write the value of a step over its tensor.
# refused: step: fetches belong to a step
# got: cannot fetch 1.0
# expected: expected a tensor
# fix: given to what session.run returned

import headrace as hr

loss = hr.constant(1.0, name="loss")
with hr.Session() as session:
    for _ in range(2):
        loss = session.run(loss)  # the mistake
