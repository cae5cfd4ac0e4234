# Start a server of a job that the cluster does not have.
# refused: building
# got: '/job:wrker/task:0'
# expected: it has
# fix: /job:worker/task:0

import headrace as hr

cluster = hr.train.ClusterSpec({"worker": ["localhost:2222"]})
server = hr.train.Server(cluster, job_name="wrker", task_index=0)  # the mistake
