# Use a layer on another number of features.
# refused: building
# got: got shape [2, 6]
# expected: expected size 5 along axis -1
# fix: does not take the input

import headrace as hr

layer = hr.layers.Dense(10)
y = layer(hr.zeros([2, 5]))
z = layer(hr.zeros([2, 6]))  # the mistake
