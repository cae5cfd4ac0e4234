# Connect to a server that is not in a cluster.
# refused: building
# got: 'grpc://localhost:2222'
# expected: mpi:...
# fix: hr.dist.Cluster(...).target

import headrace as hr

session = hr.Session("grpc://localhost:2222")  # the mistake
