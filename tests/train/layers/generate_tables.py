"""Run the cases with TensorFlow 1.15, and write the tables that the tests compare with.

    python3.7 tests/train/layers/generate_tables.py

needs an environment with TensorFlow 1.15; the tests themselves do not.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent


def main():
    """Write ``tables.json``."""
    sys.path.insert(0, str(HERE))
    warnings.filterwarnings("ignore")
    import cases
    import tensorflow as tf

    tf.logging.set_verbosity("ERROR")
    found = {}
    for name, case in cases.CASES.items():
        with tf.Graph().as_default():
            found[name] = cases.record(tf, case)
    with tf.Graph().as_default():
        trained = cases.record_net(tf, tf.train)
    with tf.Graph().as_default():
        names = cases.names(tf)
        variables = [v.name for v in tf.global_variables()]
        updates = [op.name for op in tf.get_collection(tf.GraphKeys.UPDATE_OPS)]
    tables = {
        "provenance": f"TensorFlow {tf.__version__} on the CPU, by generate_tables.py",
        "cases": found,
        "net": trained,
        "names": {"outputs": names, "variables": variables, "updates": updates},
    }
    (HERE / "tables.json").write_text(json.dumps(tables, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
