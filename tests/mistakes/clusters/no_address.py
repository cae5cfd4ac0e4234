# Describe a cluster by a list.
# refused: building
# got: got ['localhost:2222']
# expected: from the names of jobs to lists of addresses
# fix: dictionary

import headrace as hr

cluster = hr.train.ClusterSpec(["localhost:2222"])  # the mistake
