# Add too few components to a queue.
# refused: building
# got: a list of 1
# expected: a list of 2 components
# fix: an element of 'queue'

import headrace as hr

queue = hr.FIFOQueue(10, [hr.float32, hr.int32], shapes=[[], []], name="queue")
add = queue.enqueue([1.0])  # the mistake
