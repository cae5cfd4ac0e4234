# Ask for a tensor by the name of its operation.
# refused: building
# got: got 'loss'
# expected: 'operation:index'
# fix: did you mean 'loss:0'

import headrace as hr

loss = hr.constant(1.0, name="loss")
found = hr.get_default_graph().get_tensor_by_name("loss")  # the mistake
