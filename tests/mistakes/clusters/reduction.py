# Reduce over ranks in a way that there is not.
# refused: building
# got: got 'average'
# expected: one of 'sum', 'mean', 'min', 'max'
# fix: AllReduce: op must be

import headrace as hr

total = hr.dist.all_reduce(hr.constant([1.0]), op="average")  # the mistake
