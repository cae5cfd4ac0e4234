# Feed by a name without an output index.
# refused: step: feeds belong to a step
# got: the operation 'x'
# expected: only tensors have values
# fix: did you mean 'x:0'

import headrace as hr

x = hr.placeholder(hr.float32, [2], name="x")
with hr.Session() as session:
    session.run(x * 2.0, {"x": [1.0, 2.0]})  # the mistake
