"""Synchronous training on a cluster that goes on without a worker, for faults to find it.

``python -m headrace run -n 4 --ps 1 program.py FOLDER STEPS``. All ranks say each phase.
"""

import sys

import headrace as hr

folder, steps = sys.argv[1], int(sys.argv[2])
with hr.dist.Cluster(on_worker_loss="continue") as cluster:
    if cluster.job_name == "ps":
        cluster.serve()
    else:
        with hr.device("/job:ps/task:0"):
            step = hr.train.get_or_create_global_step()
            weights = hr.get_variable("weights", [8, 4], initializer=hr.zeros_initializer())
        x = hr.random_normal([16, 8], seed=3 + cluster.task_index)
        y = hr.matmul(x, hr.ones([8, 4]))
        loss = hr.reduce_mean(hr.square(hr.matmul(x, weights) - y))
        optimizer = hr.train.SyncReplicasOptimizer(
            hr.train.GradientDescentOptimizer(0.05), replicas_to_aggregate=cluster.num_workers
        )
        train = optimizer.minimize(loss, step)
        hooks = [
            optimizer.make_session_run_hook(cluster.is_chief, num_tokens=0),
            hr.train.StopAtStepHook(last_step=steps),
        ]
        with hr.train.MonitoredTrainingSession(
            cluster.target,
            cluster.is_chief,
            folder,
            scaffold=hr.train.Scaffold(saver=hr.train.Saver(sharded=True)),
            hooks=hooks,
            save_checkpoint_steps=5,
            save_checkpoint_secs=None,
            save_summaries_steps=None,
            save_summaries_secs=None,
            log_step_count_steps=None,
        ) as session:
            while not session.should_stop():
                _, value = session.run([train, loss])
        if cluster.is_chief:
            sys.stdout.write(f"loss {float(value):.6f}\n")
