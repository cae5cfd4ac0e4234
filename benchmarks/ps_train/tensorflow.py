"""The language model on TensorFlow's servers, which speak gRPC, with its graphs and sessions."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.ps_train.graph import train_step
from benchmarks.ps_train.sizes import words
from benchmarks.server_jobs.timing import Job, measure, watch


def play(job: Job) -> None:
    """Play the part of this process; a server never ends by itself."""
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    tf.enable_resource_variables()
    hosts = [f"127.0.0.1:{port}" for port in job.ports]
    cluster = tf.train.ClusterSpec({"ps": hosts[: job.servers], "worker": hosts[job.servers :]})
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    if job.index < 0:
        server = tf.train.Server(cluster, "ps", job.server, config=config)
        watch(job)
        server.join()
        return
    server = tf.train.Server(cluster, "worker", job.index, config=config)
    fed, train, loss = train_step(tf, job.kind, job.servers, job.index)
    rng = np.random.default_rng(job.index)
    with tf.Session(server.target) as session:
        if not job.index:
            session.run(tf.global_variables_initializer())
        missing = tf.report_uninitialized_variables()
        while session.run(missing).size:
            time.sleep(0.01)
        call = session.make_callable([train, loss], [fed])
        measure(lambda: call(words(rng))[1], job)
