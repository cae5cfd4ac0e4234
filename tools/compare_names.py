"""Compare the public names with TensorFlow 1.15's.

    python3.7 tools/compare_names.py list names.json      # in an environment with TensorFlow 1.15
    python tools/compare_names.py compare names.json      # in one with Headrace

prints, for each module of TensorFlow, the names that Headrace does not have there.
"""

import json
import sys
import types
from pathlib import Path

MODULES = (
    *("", "bitwise", "compat", "config", "config.experimental", "config.optimizer"),
    *("config.threading", "data", "debugging", "distributions", "dtypes", "errors"),
    *("gfile", "graph_util"),
    *("image", "initializers", "io", "io.gfile", "layers", "linalg", "logging", "lookup", "losses"),
    *("manip", "math", "metrics", "nest", "nn", "nn.rnn_cell", "profiler", "python_io"),
    *("quantization", "queue", "random", "resource_loader", "saved_model", "sets", "signal"),
    *("sparse", "spectral", "strings", "summary", "sysconfig", "test", "train"),
    *("train.experimental", "train.queue_runner", "version"),
)


def found(root, path):
    """Return a module by its path, None where there is none."""
    for part in filter(None, path.split(".")):
        root = getattr(root, part, None)
    return root


def listed():
    """Return TensorFlow's public names, by module."""
    import tensorflow

    names = {}
    for path in MODULES:
        module = found(tensorflow, path)
        names[path] = [
            name
            for name in dir(module)
            if name[0] != "_" and not isinstance(getattr(module, name), types.ModuleType)
        ]
    return names


def missing(names):
    """Return the names that Headrace does not have, by module."""
    import headrace

    for path, several in names.items():
        module = found(headrace, path)
        lacking = [name for name in several if module is None or not hasattr(module, name)]
        if lacking:
            yield path, lacking


def main(arguments):
    """List or compare."""
    command, file = arguments
    if command == "list":
        Path(file).write_text(json.dumps(listed(), indent=1))
        return
    for path, lacking in missing(json.loads(Path(file).read_text())):
        heading = f"tf.{path}".rstrip(".")
        sys.stdout.write(f"{heading}: {len(lacking)}\n  {' '.join(lacking)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
