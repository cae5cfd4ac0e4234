# Summarize images without channels.
# refused: building
# got: got shape [1, 28, 28]
# expected: a 4-D tensor
# fix: last dim 1, 3, or 4

import headrace as hr

image = hr.zeros([1, 28, 28], name="image")
summary = hr.summary.image("image", image)  # the mistake
