# Call a function of NumPy on a tensor.
# refused: building
# got: got <Tensor 'x:0' float32[3]>
# expected: computes with values
# fix: as hr.sin for numpy.sin

import numpy as np

import headrace as hr

x = hr.placeholder(hr.float32, [3], name="x")
y = np.sin(x)  # the mistake
