# Take from a queue that is closed and empty.
# refused: step: it closes at run time
# got: got 0
# expected: expected 1
# fix: 'queue' is closed

import headrace as hr

queue = hr.FIFOQueue(10, hr.float32, shapes=[[]], name="queue")
batch = queue.dequeue()  # the mistake
with hr.Session() as session:
    session.run(queue.close())
    session.run(batch)
