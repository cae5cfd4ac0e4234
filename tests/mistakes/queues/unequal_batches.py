# Add a batch whose components have different lengths.
# refused: building
# got: int32[2]
# expected: must have shape [3]
# fix: component 1 of 'queue'

import headrace as hr

queue = hr.FIFOQueue(10, [hr.float32, hr.int32], shapes=[[], []], name="queue")
add = queue.enqueue_many([[1.0, 2.0, 3.0], [1, 2]])  # the mistake
