# Misspell the name of a tensor.
# refused: building
# got: 'model/los'
# expected: the graph has no operation
# fix: did you mean 'model/loss'

import headrace as hr

loss = hr.constant(1.0, name="model/loss")
found = hr.get_default_graph().get_tensor_by_name("model/los:0")  # the mistake
