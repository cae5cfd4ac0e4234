# Pass the graph as the first argument.
# refused: building
# got: got <Graph of 0 operations>
# expected: target must be a string
# fix: passed as graph=

import headrace as hr

graph = hr.Graph()
session = hr.Session(graph)  # the mistake
