# Join data sets of different dtypes.
# refused: building
# got: got string
# expected: expected int64
# fix: concatenate

import headrace as hr

numbers = hr.data.Dataset.range(10)
all_of_them = numbers.concatenate(hr.data.Dataset.from_tensors("ten"))  # the mistake
