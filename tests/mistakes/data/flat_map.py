# Return a tensor where a data set is expected.
# refused: building
# got: got <Tensor 'add:0' int64[]>
# expected: must return a data set
# fix: hr.data.Dataset.from_tensors makes one

import headrace as hr

numbers = hr.data.Dataset.range(10)
more = numbers.flat_map(lambda x: x + 1)  # the mistake
