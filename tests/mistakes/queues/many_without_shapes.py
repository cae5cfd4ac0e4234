# Take batches from a queue whose shapes are not known.
# refused: building
# got: component 0: [...]
# expected: fixed shapes
# fix: pass shapes= to the queue

import headrace as hr

queue = hr.FIFOQueue(10, hr.float32, name="queue")
batch = queue.dequeue_many(4)  # the mistake
