# Fetch a tensor of another graph.
# refused: step: fetches belong to a step
# got: 'x:0'
# expected: belongs to another graph
# fix: hr.Session(graph=tensor.graph)

import headrace as hr

with hr.Graph().as_default():
    x = hr.constant(1.0, name="x")
with hr.Session() as session:
    session.run(x)  # the mistake
