# Make a layer with a negative number of units.
# refused: building
# got: got -10
# expected: at least 0
# fix: units must be

import headrace as hr

x = hr.placeholder(hr.float32, [None, 784], name="x")
y = hr.layers.dense(x, -10)  # the mistake
