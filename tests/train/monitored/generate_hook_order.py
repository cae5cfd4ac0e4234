"""Run the programs of hook_cases.py with TensorFlow 1.15, and write in what order hooks run.

    python3.7 tests/train/monitored/generate_hook_order.py

needs an environment with TensorFlow 1.15; the tests themselves do not.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent


def main():
    """Write ``hook_order.json``."""
    sys.path.insert(0, str(HERE))
    warnings.filterwarnings("ignore")
    import hook_cases
    import tensorflow as tf

    tf.logging.set_verbosity("FATAL")
    table = {
        "provenance": "TensorFlow %s on the CPU, by generate_hook_order.py" % tf.__version__,
        "cases": {name: hook_cases.record(tf, name) for name in hook_cases.CASES},
    }
    (HERE / "hook_order.json").write_text(json.dumps(table, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
