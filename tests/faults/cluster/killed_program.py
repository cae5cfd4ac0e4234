"""Training that notes its process ids and losses, for ``kills.py`` to kill its ranks.

``python -m headrace run ... killed_program.py FOLDER MODE STEPS``: ``async`` workers each apply
their own gradients and the job goes on without those that are lost; ``sync`` ones go in step.
"""

import os
import sys
from pathlib import Path

import headrace as hr

enough = Path(sys.argv[1], "enough")
folder, mode, steps = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
goes_on = "continue" if mode == "async" else "end"
with hr.dist.Cluster(on_worker_loss=goes_on) as cluster:
    pid = folder / f"pid-{cluster.job_name}-{cluster.task_index}"
    if cluster.job_name == "ps":
        pid.write_text(str(os.getpid()))
        cluster.serve()
    else:
        with hr.device("/job:ps/task:0"):
            step = hr.train.get_or_create_global_step()
            weights = hr.get_variable("weights", [32, 8], initializer=hr.zeros_initializer())
        # The data of a step follow from its number, also where it is made again.
        x = hr.random.stateless_normal([16, 32], seed=[cluster.task_index, step.value()])
        target = hr.ones([32, 8]) * 0.5
        loss = hr.reduce_mean(hr.square(hr.matmul(x, weights - target)))
        optimizer = hr.train.MomentumOptimizer(0.002 if mode == "async" else 0.01, 0.9)
        hooks = [hr.train.StopAtStepHook(last_step=steps)]
        if mode == "sync":
            optimizer = hr.train.SyncReplicasOptimizer(optimizer, cluster.num_workers)
        train = optimizer.minimize(loss, step)
        if mode == "sync":
            hooks.append(optimizer.make_session_run_hook(cluster.is_chief, num_tokens=0))
        before = hr.identity(step)
        with hr.train.MonitoredTrainingSession(
            cluster.target,
            cluster.is_chief,
            str(folder / "run"),
            hooks=hooks,
            save_checkpoint_steps=20 if mode == "sync" else 100,
            save_checkpoint_secs=None,
            save_summaries_steps=None,
            save_summaries_secs=None,
            log_step_count_steps=None,
            # Otherwise a start anew would show: what is not compiled yet rounds otherwise.
            config=hr.Config(deterministic=mode == "sync"),
        ) as session:
            pid.write_text(str(os.getpid()))
            while not session.should_stop():
                at, value, _ = session.run([before, loss, train])
                if cluster.is_chief:
                    with (folder / "losses").open("a") as file:
                        file.write(f"{int(at)} {float(value).hex()} .\n")
                # After a step that is yet to come, so that all stop at the same one.
                if enough.exists() and int(at) >= int(enough.read_text() or at):
                    break
