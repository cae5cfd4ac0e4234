"""Write ``saver_table.json``: what TensorFlow 1.15 does in ``saver_programs``.

Run with the Python of an installation of TensorFlow 1.15.5; the tests read only the table.
"""

import json
import os
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import saver_programs  # noqa: E402

FAMILIES = {"TypeError", "ValueError", "RuntimeError", "AssertionError", "KeyError", "LookupError"}


def attempt(function):
    """Return what a function returns, or the families of its error."""
    try:
        return function()
    except Exception as error:
        kinds = [kind.__name__ for kind in type(error).__mro__]
        known = [k for k in kinds if k in FAMILIES or hasattr(tf.errors, k)]
        return {"error": known[0] if known else kinds[0]}


def main():
    """Run all programs and write the table."""
    tf.compat.v1.logging.set_verbosity("FATAL")
    found = {}
    for name, program in saver_programs.PROGRAMS.items():
        with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
            text = json.dumps(program(tf, folder, attempt))
            found[name] = json.loads(text.replace(folder, "D"))
    made = {"made_with": f"TensorFlow {tf.__version__}", "programs": found}
    with open(os.path.join(HERE, "saver_table.json"), "w") as stream:
        json.dump(made, stream, indent=1, sort_keys=True)
        stream.write("\n")


main()
