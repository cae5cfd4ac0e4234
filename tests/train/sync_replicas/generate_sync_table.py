"""Writes ``sync_table.json``: what the programs return in TensorFlow 1.15, on a cluster of threads.

Run with a Python that has TensorFlow 1.15 (the file was made with 1.15.5):

    CUDA_VISIBLE_DEVICES= python tests/train/sync_replicas/generate_sync_table.py
"""

import contextlib
import json
import os
import socket
import sys
from pathlib import Path

import tensorflow as tf

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from sync_programs import PROGRAMS  # noqa: E402

tf.logging.set_verbosity("FATAL")


def free_port():
    with contextlib.closing(socket.socket()) as found:
        found.bind(("localhost", 0))
        return found.getsockname()[1]


class Servers:
    """A cluster of servers in this process."""

    def __init__(self):
        spec = {
            "ps": ["localhost:%d" % free_port() for _ in range(2)],
            "worker": ["localhost:%d" % free_port() for _ in range(4)],
        }
        self.servers = {
            (job, i): tf.train.Server(spec, job_name=job, task_index=i)
            for job, tasks in spec.items()
            for i in range(len(tasks))
        }
        self.device = tf.device
        self.scope = contextlib.nullcontext if hasattr(contextlib, "nullcontext") else None

    def arguments(self, index):
        return {}

    def session(self, replica):
        return tf.train.MonitoredTrainingSession(
            self.servers["worker", replica.index].target,
            is_chief=replica.index == 0,
            hooks=[replica.hook],
        )


found = {name: program(tf, Servers()) for name, program in PROGRAMS.items()}
table = {"provenance": "TensorFlow %s, by generate_sync_table.py" % tf.__version__, "cases": found}
(HERE / "sync_table.json").write_text(json.dumps(table, sort_keys=True) + "\n")
# Threads of the chiefs wait for gradients that never come.
os._exit(0)
