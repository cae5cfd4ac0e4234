# Export outputs that are no tensors.
# refused: step: exporting needs values
# got: got 1.0
# expected: expected a tensor
# fix: hr.constant makes one

import headrace as hr

x = hr.placeholder(hr.float32, [None], name="x")
v = hr.Variable(2.0, name="v")
with hr.Session() as session:
    session.run(v.initializer)
    hr.saved_model.simple_save(session, "export", {"x": x}, {"y": 1.0})  # the mistake
