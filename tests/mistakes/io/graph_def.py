# Import text as a graph.
# refused: building
# got: got str
# expected: must be a GraphDef
# fix: GraphDef.FromString reads the bytes

import headrace as hr

hr.import_graph_def("node { }")  # the mistake
