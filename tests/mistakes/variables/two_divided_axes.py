# Divide a variable along two axes.
# refused: building
# got: asks for [2, 2]
# expected: along one axis only
# fix: variable 'v'

import headrace as hr


def halves(shape, dtype):
    return [2, 2]


v = hr.get_variable("v", [10, 4], partitioner=halves)  # the mistake
