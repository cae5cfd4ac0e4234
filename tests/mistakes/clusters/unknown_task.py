# Start a server of a task that the cluster does not have.
# refused: building
# got: '/job:worker/task:1'
# expected: it has
# fix: /job:worker/task:0

import headrace as hr

cluster = hr.train.ClusterSpec({"worker": ["localhost:2222"]})
server = hr.train.Server(cluster, job_name="worker", task_index=1)  # the mistake
