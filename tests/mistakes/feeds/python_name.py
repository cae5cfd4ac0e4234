# Feed under the name of the Python variable.
# refused: step: feeds belong to a step
# got: 'images:0'
# expected: the graph has no operation
# fix: its placeholders are 'x:0'

import headrace as hr

images = hr.placeholder(hr.float32, [2], name="x")
with hr.Session() as session:
    session.run(images * 2.0, {"images:0": [1.0, 2.0]})  # the mistake
