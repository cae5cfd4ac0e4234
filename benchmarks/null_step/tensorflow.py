"""The null step on TensorFlow's servers, which speak gRPC, with its graphs and sessions."""

from __future__ import annotations

from benchmarks.null_step.kinds import KINDS, ROWS_TAKEN
from benchmarks.null_step.timing import Job, measure, watch


def play(job: Job) -> None:
    """Play the part of this process; the ps never ends by itself."""
    import numpy as np
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    hosts = [f"127.0.0.1:{port}" for port in job.ports]
    cluster = tf.train.ClusterSpec({"ps": hosts[:1], "worker": hosts[1:]})
    if job.index < 0:
        server = tf.train.Server(cluster, "ps", 0)
        watch(job)
        server.join()
        return
    server = tf.train.Server(cluster, "worker", job.index)
    kind = KINDS[job.kind]
    with tf.device("/job:ps/task:0"):
        parameters = tf.get_variable(
            "parameters", kind.shape, initializer=tf.zeros_initializer(), use_resource=True
        )
        count = tf.get_variable("count", [], initializer=tf.zeros_initializer(), use_resource=True)
        ids = tf.placeholder(tf.int64, [ROWS_TAKEN]) if kind.sparse else None
        taken = parameters.read_value() if ids is None else tf.gather(parameters, ids)
    with tf.device(f"/job:worker/task:{job.index}"):
        here = tf.identity(taken)
        with tf.control_dependencies([here]):
            one = tf.identity(tf.ones([]))
    update = tf.assign_add(count, one).op
    rng = np.random.default_rng(job.index)
    with tf.Session(server.target) as session:
        # Zeros, whoever writes them first or last.
        session.run(tf.global_variables_initializer())
        call = session.make_callable(update, [] if ids is None else [ids])

        def step() -> None:
            if ids is None:
                call()
            else:
                call(rng.integers(0, kind.shape[0], ROWS_TAKEN))

        measure(step, job)
