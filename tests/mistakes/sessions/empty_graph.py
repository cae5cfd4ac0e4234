# Make a session for a graph other than the one that was built.
# refused: step: fetches belong to a step
# got: 'loss:0'
# expected: the graph has no operation
# fix: hr.Session(graph=...)

import headrace as hr

loss = hr.constant(1.0, name="loss")
with hr.Session(graph=hr.Graph()) as session:
    session.run("loss:0")  # the mistake
