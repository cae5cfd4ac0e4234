# Filter a data set by a number.
# refused: building
# got: got int64[]
# expected: must return a bool scalar
# fix: lambda x: x > 0

import headrace as hr

numbers = hr.data.Dataset.range(10)
kept = numbers.filter(lambda x: x % 2)  # the mistake
