# Batch by a negative size.
# refused: building
# got: got -1
# expected: greater than zero
# fix: batch_size must be

import headrace as hr

dataset = hr.data.Dataset.range(10).batch(-1)  # the mistake
