# Ask for the address of a task that is not there.
# refused: building
# got: no task 3
# expected: job 'worker'
# fix: it has [0]

import headrace as hr

cluster = hr.train.ClusterSpec({"worker": ["localhost:2222"]})
address = cluster.task_address("worker", 3)  # the mistake
