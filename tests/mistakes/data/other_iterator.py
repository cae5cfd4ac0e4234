# Initialize an iterator with a data set of another dtype.
# refused: building
# got: got headrace.float32
# expected: expected output types headrace.int64
# fix: make_initializer

import headrace as hr

iterator = hr.data.Iterator.from_structure(hr.int64, [])
start = iterator.make_initializer(hr.data.Dataset.from_tensors(1.0))  # the mistake
