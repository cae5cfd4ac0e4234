# Use a session after it was closed.
# refused: step: sessions close at run time
# got: the session was closed
# expected: open a new one
# fix: hr.Session()

import headrace as hr

x = hr.constant(1.0, name="x")
with hr.Session() as session:
    session.run(x)
session.run(x)  # the mistake
