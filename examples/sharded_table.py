"""Tables in shards: two parameter servers hold the halves of two tables that workers train.

    mpirun -n 4 python examples/sharded_table.py

The model asks for no device. A device function puts each part of a table on a parameter server and
the rest on the worker that runs the step, so that only the rows that a batch names travel.
"""

import time

import numpy as np

import headrace as hr

STEPS, BATCH = 100, 512
USERS, FILMS, FACTORS = 400, 300, 4

with hr.dist.Cluster(jobs={"ps": 2, "worker": None}) as cluster:
    if cluster.job_name == "ps":
        cluster.serve()
    else:
        # Ratings that follow from few numbers of each user and each film.
        rng = np.random.default_rng(0)
        truth = rng.normal(size=(USERS, FACTORS)) @ rng.normal(size=(FACTORS, FILMS))
        users = hr.placeholder(hr.int64, [None])
        films = hr.placeholder(hr.int64, [None])
        ratings = hr.placeholder(hr.float32, [None])

        worker = f"/job:worker/task:{cluster.task_index}"
        shards = hr.fixed_size_partitioner(cluster.num_tasks("ps"))
        with (
            hr.device(hr.train.replica_device_setter(2, worker_device=worker)),
            hr.variable_scope("tables", partitioner=shards),
        ):
            steps = hr.train.get_or_create_global_step()
            start = hr.random_normal_initializer(stddev=0.5)
            of_users = hr.get_variable("users", [USERS, FACTORS], initializer=start)
            of_films = hr.get_variable("films", [FILMS, FACTORS], initializer=start)
            told = hr.nn.embedding_lookup(of_users, users, "div")
            shown = hr.nn.embedding_lookup(of_films, films, "div")
            loss = hr.reduce_mean(hr.square(hr.reduce_sum(told * shown, 1) - ratings))
            train_step = hr.train.LazyAdamOptimizer(0.1).minimize(loss, steps)
        ready = hr.report_uninitialized_variables()

        with hr.Session(cluster.target) as session:
            if cluster.is_chief:
                session.run(hr.global_variables_initializer())
            while len(session.run(ready)):
                time.sleep(0.01)
            # Each worker draws its own ratings.
            rng = np.random.default_rng(cluster.task_index)
            for _ in range(STEPS):
                u, f = rng.integers(USERS, size=BATCH), rng.integers(FILMS, size=BATCH)
                session.run(train_step, {users: u, films: f, ratings: truth[u, f]})
            if cluster.is_chief:
                while session.run(steps) < STEPS * cluster.num_workers:
                    time.sleep(0.01)
                u, f = rng.integers(USERS, size=5000), rng.integers(FILMS, size=5000)
                error = session.run(loss, {users: u, films: f, ratings: truth[u, f]})
                places = [part.device for part in of_users]
                print(f"shards on {' and '.join(places)}; mean error {error:.1f} of 4.1")
