# Misspell a padding.
# refused: building
# got: got 'FULL'
# expected: padding must be
# fix: 'SAME' or 'VALID'

import headrace as hr

image = hr.placeholder(hr.float32, [None, 28, 28, 1], name="image")
y = hr.nn.max_pool(image, [1, 2, 2, 1], [1, 2, 2, 1], padding="FULL")  # the mistake
