# Ask for the second output of an operation that has one.
# refused: building
# got: 'loss:1'
# expected: has 1 outputs
# fix: the first is 'loss:0'

import headrace as hr

loss = hr.constant(1.0, name="loss")
found = hr.get_default_graph().get_tensor_by_name("loss:1")  # the mistake
