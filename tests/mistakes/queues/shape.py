# Add elements of another shape to a queue.
# refused: building
# got: a list of 2
# expected: a list of 1 components
# fix: goes into another list

import headrace as hr

queue = hr.FIFOQueue(10, hr.float32, shapes=[[3]], name="queue")
add = queue.enqueue([1.0, 2.0])  # the mistake
