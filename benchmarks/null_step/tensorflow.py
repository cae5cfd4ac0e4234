"""The null step on TensorFlow's servers, which speak gRPC, with its graphs and sessions."""

from __future__ import annotations

from benchmarks.null_step.kinds import KINDS, ROWS_TAKEN
from benchmarks.server_jobs.timing import Job, measure, watch


def play(job: Job) -> None:
    """Play the part of this process; the ps never ends by itself."""
    import numpy as np
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    hosts = [f"127.0.0.1:{port}" for port in job.ports]
    cluster = tf.train.ClusterSpec({"ps": hosts[: job.servers], "worker": hosts[job.servers :]})
    if job.index < 0:
        server = tf.train.Server(cluster, "ps", job.server)
        watch(job)
        server.join()
        return
    server = tf.train.Server(cluster, "worker", job.index)
    kind = KINDS[job.kind]
    ids = tf.placeholder(tf.int64, [ROWS_TAKEN]) if kind.sparse else None
    updates = []
    zeros = tf.zeros_initializer()
    for task in range(job.servers):
        with tf.device(f"/job:ps/task:{task}"):
            parameters = tf.get_variable(
                f"parameters_{task}", kind.shape, initializer=zeros, use_resource=True
            )
            count = tf.get_variable(f"count_{task}", [], initializer=zeros, use_resource=True)
            taken = parameters.read_value() if ids is None else tf.gather(parameters, ids)
        with tf.device(f"/job:worker/task:{job.index}"):
            here = tf.identity(taken)
            with tf.control_dependencies([here]):
                one = tf.identity(tf.ones([]))
        updates.append(tf.assign_add(count, one).op)
    rng = np.random.default_rng(job.index)
    with tf.Session(server.target) as session:
        # Zeros, whoever writes them first or last.
        session.run(tf.global_variables_initializer())
        call = session.make_callable(tf.group(*updates), [] if ids is None else [ids])

        def step() -> None:
            if ids is None:
                call()
            else:
                call(rng.integers(0, kind.shape[0], ROWS_TAKEN))

        measure(step, job)
