# Add an operation to a graph that was finalized.
# refused: building
# got: cannot add Const
# expected: the graph was finalized
# fix: build the whole graph before finalize()

import headrace as hr

x = hr.placeholder(hr.float32, [3], name="x")
hr.get_default_graph().finalize()
y = x * 2.0  # the mistake
