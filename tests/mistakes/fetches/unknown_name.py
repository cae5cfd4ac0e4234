# Fetch a name that is not in the graph.
# refused: step: fetches belong to a step
# got: 'losses:0'
# expected: the graph has no operation
# fix: did you mean 'loss'

import headrace as hr

loss = hr.constant(1.0, name="loss")
with hr.Session() as session:
    session.run("losses:0")  # the mistake
