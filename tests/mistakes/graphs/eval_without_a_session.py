# Ask for a value where there is no session.
# refused: building
# got: there is no default session
# expected: session
# fix: with hr.Session() as session:

import headrace as hr

x = hr.constant(1.0, name="x")
print(x.eval())  # the mistake
