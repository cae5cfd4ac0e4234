"""Writes ``expected.json``: what the programs return and raise in TensorFlow 1.15.

Run with a Python that has TensorFlow 1.15 (the file was made with 1.15.5):

    CUDA_VISIBLE_DEVICES= python tests/train/from_checkpoint/generate_expected.py
"""

import base64
import json
import sys
import tempfile
import zlib
from pathlib import Path

import tensorflow as tf

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from checkpoint_programs import PROGRAMS  # noqa: E402

BUNDLES = json.loads((HERE.parent / "bundles" / "bundles.json").read_text())


def lay_down(folder):
    for kind in ("everything", "parts"):
        for ending, content in BUNDLES[kind]["files"].items():
            data = zlib.decompress(base64.b64decode(content))
            (Path(folder) / (kind + ending)).write_bytes(data)


def outcome(program):
    with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default(), tf.Session() as session:
        lay_down(folder)
        try:
            return {"returns": program(tf, session.run, folder)}
        except Exception as error:
            return {"raises": type(error).__name__}


with (HERE / "expected.json").open("w") as file:
    found = {name: outcome(program) for name, program in PROGRAMS.items()}
    json.dump(found, file, indent=1, sort_keys=True)
    file.write("\n")
