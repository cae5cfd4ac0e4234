# Loop over a data set in Python.
# refused: building
# got: a data set is a description
# expected: make an iterator
# fix: run what its get_next() returns

import headrace as hr

for number in hr.data.Dataset.range(10):  # the mistake
    print(number)
