# Add elements of another dtype to a queue.
# refused: building
# got: has dtype int32
# expected: expected float32
# fix: convert it with hr.cast

import headrace as hr

queue = hr.FIFOQueue(10, hr.float32, shapes=[[]], name="queue")
add = queue.enqueue(hr.constant(1))  # the mistake
