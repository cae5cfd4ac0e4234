# Load a saved model with tags that it does not have.
# refused: step: models are files
# got: ['train']
# expected: ['serve']
# fix: its graphs have the tags

import headrace as hr

x = hr.placeholder(hr.float32, [None], name="x")
v = hr.Variable(2.0, name="v")
with hr.Session() as session:
    session.run(v.initializer)
    hr.saved_model.simple_save(session, "export", inputs={"x": x}, outputs={"y": x * v})
with hr.Graph().as_default(), hr.Session() as session:
    hr.saved_model.load(session, ["train"], "export")  # the mistake
