# Export variables that have no values.
# refused: step: another step may initialize it
# got: not initialized: v
# expected: is not initialized
# fix: hr.global_variables_initializer()

import headrace as hr

x = hr.placeholder(hr.float32, [None], name="x")
v = hr.Variable(2.0, name="v")
with hr.Session() as session:
    hr.saved_model.simple_save(session, "export", {"x": x}, {"y": x * v})  # the mistake
