# Give a reader a queue of numbers.
# refused: building
# got: has int32
# expected: a queue of one component, a string
# fix: queue 'numbers'

import headrace as hr

reader = hr.TextLineReader()
queue = hr.FIFOQueue(10, hr.int32, shapes=[[]], name="numbers")
key, line = reader.read(queue)  # the mistake
