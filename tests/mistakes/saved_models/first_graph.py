# Add further graphs before the first with variables.
# refused: building
# got: no variables have been added yet
# expected: call
# fix: add_meta_graph_and_variables() first

import headrace as hr

builder = hr.saved_model.Builder("export")
builder.add_meta_graph(["serve"])  # the mistake
