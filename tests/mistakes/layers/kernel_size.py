# Give a filter three sizes where images have two.
# refused: building
# got: got [3, 3, 3]
# expected: 2 of them
# fix: kernel_size

import headrace as hr

x = hr.placeholder(hr.float32, [None, 28, 28, 1])
y = hr.layers.conv2d(x, 8, [3, 3, 3])  # the mistake
