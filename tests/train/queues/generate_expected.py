"""Writes ``expected.json``: what the programs return and raise in TensorFlow 1.15.

Run with a Python that has TensorFlow 1.15 (the file was made with 1.15.5):

    CUDA_VISIBLE_DEVICES= python tests/train/queues/generate_expected.py
"""

import json
import sys
from pathlib import Path

import tensorflow as tf

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from accumulator_programs import PROGRAMS as ACCUMULATORS  # noqa: E402
from queue_programs import PROGRAMS as QUEUES  # noqa: E402


class Run:
    def __init__(self):
        self.session = tf.Session()

    def __call__(self, fetches):
        return self.session.run(fetches)


def outcome(program):
    with tf.Graph().as_default():
        try:
            return {"returns": program(tf, Run())}
        except Exception as error:
            return {"raises": type(error).__name__}


with (HERE / "expected.json").open("w") as file:
    programs = dict(QUEUES, **ACCUMULATORS)
    found = {name: outcome(program) for name, program in programs.items()}
    json.dump(found, file, indent=1, sort_keys=True)
    file.write("\n")
