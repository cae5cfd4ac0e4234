# Differentiate by what is no tensor.
# refused: building
# got: got 3.0 (float)
# expected: tensors or variables of a graph
# fix: xs are

import headrace as hr

x = hr.placeholder(hr.float32, [3], name="x")
g = hr.gradients(x * x, 3.0)  # the mistake
