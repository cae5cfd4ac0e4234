# Convolve images without an axis for channels.
# refused: building
# got: got shape [?, 28, 28]
# expected: 4 dimensions
# fix: hr.expand_dims and hr.reshape add axes

import headrace as hr

image = hr.placeholder(hr.float32, [None, 28, 28], name="image")
kernel = hr.zeros([5, 5, 1, 32], name="kernel")
y = hr.nn.conv2d(image, kernel, strides=[1, 1, 1, 1], padding="SAME")  # the mistake
