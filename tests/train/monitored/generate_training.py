"""Run the programs of training_cases.py with TensorFlow 1.15, and write what came of them.

    python3.7 tests/train/monitored/generate_training.py

needs an environment with TensorFlow 1.15; the tests themselves do not.
"""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from pathlib import Path

HERE = Path(__file__).parent


def main():
    """Write ``training.json``."""
    sys.path.insert(0, str(HERE))
    warnings.filterwarnings("ignore")
    import tensorflow as tf
    import training_cases

    tf.logging.set_verbosity("FATAL")
    found = {}
    for name in training_cases.CASES:
        with tempfile.TemporaryDirectory() as folder:
            found[name] = training_cases.record(tf, name, folder)
    table = {
        "provenance": "TensorFlow %s on the CPU, by generate_training.py" % tf.__version__,
        "cases": found,
    }
    (HERE / "training.json").write_text(json.dumps(table, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
