"""A variable on a parameter server, incremented by a worker.

mpirun -n 2 python examples/two_tasks.py
"""

import headrace as hr

with hr.dist.Cluster(ps=1) as cluster:
    if cluster.job_name == "ps":
        cluster.serve()
    else:
        with hr.device("/job:ps/task:0"):
            counter = hr.Variable(0)
        with hr.device(f"/job:worker/task:{cluster.task_index}"):
            increment = counter.assign_add(hr.constant(1))
        with hr.Session(cluster.target) as session:
            session.run(counter.initializer)
            for _ in range(3):
                session.run(increment)
            print(f"the counter on the parameter server stands at {session.run(counter)}")
