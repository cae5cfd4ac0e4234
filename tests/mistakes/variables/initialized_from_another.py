# Start a variable from another that no collection lists and that has no value yet.
# refused: step: another step may initialize it
# got: not initialized: a
# expected: is not initialized
# fix: hr.global_variables_initializer()

import headrace as hr

a = hr.Variable(1.0, name="a", collections=[])
b = hr.Variable(a + 1.0, name="b")
with hr.Session() as session:
    session.run(b.initializer)  # the mistake
