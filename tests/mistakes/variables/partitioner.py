# Pass the number of parts as a partitioner.
# refused: building
# got: got 2
# expected: must be a function
# fix: partitioner

import headrace as hr

v = hr.get_variable("v", [10, 4], partitioner=2)  # the mistake
