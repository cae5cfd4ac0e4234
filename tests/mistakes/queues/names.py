# Add a list to a queue whose components have names.
# refused: building
# got: got list
# expected: dicts with the keys
# fix: 'image', 'label'

import headrace as hr

queue = hr.FIFOQueue(10, [hr.float32, hr.int32], [[], []], names=["image", "label"], name="queue")
add = queue.enqueue([1.0, 2])  # the mistake
