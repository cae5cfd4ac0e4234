# Wait for an element that nobody adds.
# refused: step: who fills the queue is known only then
# got: was not done
# expected: within 0.2 s
# fix: enqueue something, or close it

import headrace as hr

queue = hr.FIFOQueue(10, hr.float32, shapes=[[]], name="queue")
batch = queue.dequeue()
with hr.Session(config=hr.Config(timeout=0.2)) as session:
    session.run(batch)  # the mistake
