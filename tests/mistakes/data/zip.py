# Zip what are no data sets.
# refused: building
# got: A list is none
# expected: a tuple or dict
# fix: pass a tuple

import headrace as hr

dataset = hr.data.Dataset.zip([[1, 2], [3, 4]])  # the mistake
