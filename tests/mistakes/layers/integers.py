# Hand integers to a layer.
# refused: building
# got: got int32
# expected: floating or complex numbers
# fix: hr.cast the input

import headrace as hr

x = hr.placeholder(hr.int32, [None, 4])
y = hr.layers.dense(x, 3)  # the mistake
