# Map a function of one argument over pairs.
# refused: building
# got: an element of 2 parts
# expected: expected a function of 2 arguments
# fix: lambda x, y: ...

import headrace as hr

dataset = hr.data.Dataset.from_tensor_slices(([1, 2], [3, 4]))
dataset = dataset.map(lambda pair: pair[0] + pair[1])  # the mistake
