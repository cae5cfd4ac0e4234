# Pair images and labels of different numbers.
# refused: building
# got: [99, 100]
# expected: expected one number for all
# fix: different numbers of rows

import numpy as np

import headrace as hr

images, labels = np.zeros([100, 784], np.float32), np.zeros([99], np.int32)
dataset = hr.data.Dataset.from_tensor_slices((images, labels))  # the mistake
