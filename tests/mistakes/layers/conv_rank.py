# Convolve a batch of flat images.
# refused: building
# got: got shape [?, 784]
# expected: expected 4 dimensions
# fix: hr.reshape

import headrace as hr

x = hr.placeholder(hr.float32, [None, 784], name="x")
y = hr.layers.conv2d(x, 32, 5)  # the mistake
