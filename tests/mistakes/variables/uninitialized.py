# Read a variable before it was initialized.
# refused: step: other steps may initialize it
# got: not initialized: w
# expected: is not initialized
# fix: hr.global_variables_initializer()

import headrace as hr

w = hr.Variable([1.0, 2.0], name="w")
y = w * 2.0
with hr.Session() as session:
    session.run(y)  # the mistake
