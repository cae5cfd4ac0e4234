"""Write ``table.json``: what TensorFlow 1.15 computes in ``pipeline_programs.py``.

Run it with a Python that has TensorFlow 1.15: ``python tests/train/pipelines/generate_table.py``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


def family(error: BaseException, tf: Any) -> str:
    """Return the class of TensorFlow's errors, or of Python's, that an error is of."""
    if isinstance(error, tf.errors.OpError):
        return type(error).__name__
    return next(kind.__name__ for kind in (ValueError, TypeError) if isinstance(error, kind))


def main() -> None:
    """Run all programs and write the table."""
    import tensorflow as tf

    sys.path.insert(0, str(FOLDER))
    from pipeline_programs import PROGRAMS
    from pipeline_refusals import REFUSALS

    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.FATAL)
    values, errors = {}, {}
    for name, build in PROGRAMS.items():
        with tf.Graph().as_default():
            values[name] = build(tf)
    for name, build in REFUSALS.items():
        with tf.Graph().as_default():
            try:
                build(tf)
            except Exception as error:
                errors[name] = family(error, tf)
            else:
                errors[name] = ""
    parts = [f'"source": "TensorFlow {tf.__version__}, by generate_table.py"']
    for key, entries in (("values", values), ("errors", errors)):
        # A program to a line, so that a change of one shows as that.
        lines = [f"{json.dumps(name)}: {json.dumps(entries[name])}" for name in sorted(entries)]
        parts.append(f'"{key}": {{\n' + ",\n".join(lines) + "\n}")
    (FOLDER / "table.json").write_text("{" + ",\n".join(parts) + "}\n")


if __name__ == "__main__":
    main()
