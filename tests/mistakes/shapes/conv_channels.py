# Convolve with a kernel for another number of channels.
# refused: building
# got: filter [5, 5, 1, 32]
# expected: input [?, 28, 28, 3]
# fix: must be a multiple

import headrace as hr

image = hr.placeholder(hr.float32, [None, 28, 28, 3], name="image")
kernel = hr.zeros([5, 5, 1, 32], name="kernel")
y = hr.nn.conv2d(image, kernel, strides=[1, 1, 1, 1], padding="SAME")  # the mistake
