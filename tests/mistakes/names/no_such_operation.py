# Misspell the name of an operation.
# refused: building
# got: 'model/lost'
# expected: the graph has no operation
# fix: did you mean 'model/loss'

import headrace as hr

loss = hr.constant(1.0, name="model/loss")
found = hr.get_default_graph().get_operation_by_name("model/lost")  # the mistake
