"""What a training program comes to: in Headrace and, under Python 3.7, in TensorFlow 1.15.5 alike.

A program is a few lines of Python as a user of TensorFlow 1.15 would write them, with the library
as ``tf``, NumPy as ``np``, and an empty ``folder``. What its last line yields is the outcome. Run
under TensorFlow's Python, this file writes the outcomes of the files of programs anew::

    python3.7 tests/train/programs/generate_outcomes.py tests/train/programs/*.txt

With ``--missing``, only those of programs that have none yet.
"""

from __future__ import annotations

import ast
import builtins
import json
import os
import shutil
import sys
import tempfile
import warnings

import numpy as np

MARK = "=> "
# The errors of TensorFlow that programs catch.
ERRORS = (
    "AbortedError", "AlreadyExistsError", "CancelledError", "DataLossError",
    "DeadlineExceededError", "FailedPreconditionError", "InternalError", "InvalidArgumentError",
    "NanLossDuringTrainingError", "NotFoundError", "OpError", "OutOfRangeError",
    "PermissionDeniedError", "ResourceExhaustedError", "UnauthenticatedError", "UnavailableError",
    "UnimplementedError", "UnknownError",
)  # fmt: skip


def read(text):
    """Return (title, program, outcome) for each program of a file; None where it has none yet."""
    found = []
    for block in text.split("\n## ")[1:]:
        title, _, rest = block.partition("\n")
        lines = rest.rstrip().splitlines()
        outcome = None
        if lines and lines[-1].startswith(MARK):
            outcome = json.loads(lines.pop()[len(MARK) :])
        found.append((title, "\n".join(lines), outcome))
    return found


def outcome(library, program):
    """Return what a program comes to, in a new graph and an empty folder, as plain data."""
    folder, before = tempfile.mkdtemp(), os.getcwd()
    os.chdir(folder)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"), library.Graph().as_default():
            warnings.simplefilter("ignore")
            try:
                return {"result": described(_result(library, program, folder), folder)}
            except Exception as error:
                families = [c.__name__ for c in type(error).__mro__ if c is not object]
                return {"refused": families, "message": str(error).strip().split("\n")[0][:300]}
    finally:
        os.chdir(before)
        shutil.rmtree(folder)


def _result(library, program, folder):
    tree = ast.parse(program)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    names = {"tf": library, "np": np, "os": os, "folder": folder}
    exec(compile(tree, "<program>", "exec"), names)
    return last and eval(compile(ast.Expression(last.value), "<program>", "eval"), names)


def described(value, folder):
    """Return a value as JSON can hold it: arrays with dtype and shape, floats as text."""
    if isinstance(value, dict):
        return {
            "dict": [[described(k, folder), described(value[k], folder)] for k in _sorted(value)]
        }
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {type(value).__name__: [described(x, folder) for x in value]}
    if isinstance(value, (list, tuple)):
        return [described(x, folder) for x in value]
    if isinstance(value, (set, frozenset)):
        return {"set": [described(x, folder) for x in sorted(value, key=str)]}
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return value.replace(folder, "FOLDER")
    if isinstance(value, bytes):
        return {"bytes": value.decode("latin1").replace(folder, "FOLDER")}
    if isinstance(value, float):
        return {"float": f"{value:.7g}"}
    if isinstance(value, (np.ndarray, np.generic)):
        return _array(np.asarray(value), folder)
    if hasattr(value, "as_list") and hasattr(value, "ndims"):
        return {"shape": None if value.ndims is None else value.as_list()}
    if hasattr(value, "op") and hasattr(value, "dtype") and hasattr(value, "shape"):
        shape = None if value.shape.ndims is None else value.shape.as_list()
        return {"of": value.name, "dtype": value.dtype.base_dtype.name, "shape": shape}
    if hasattr(value, "as_numpy_dtype"):
        return {"dtype": value.name}
    return {"type": type(value).__name__}


def _sorted(value):
    return sorted(value, key=lambda key: str(getattr(key, "name", key)))


def _array(array, folder):
    shape, flat = list(array.shape), array.reshape(-1)
    if array.dtype.kind in "OSU":
        texts = [x.decode("latin1") if isinstance(x, bytes) else str(x) for x in flat]
        return {
            "array": "string",
            "shape": shape,
            "value": [x.replace(folder, "FOLDER") for x in texts],
        }
    if array.dtype.kind == "c":
        flat = np.stack([flat.real, flat.imag], -1).reshape(-1)
    if array.dtype.kind in "biu":
        return {"array": str(array.dtype), "shape": shape, "value": flat.tolist()}
    return {"array": str(array.dtype), "shape": shape, "value": [f"{float(x):.7g}" for x in flat]}


def difference(ours, theirs, rtol=2e-4, atol=1e-5):
    """Return what tells two outcomes apart, in words; empty where nothing does."""
    if ("refused" in ours) != ("refused" in theirs):
        return f"ours {ours}, TensorFlow's {theirs}"
    if "refused" not in theirs:
        return _apart("result", ours["result"], theirs["result"], rtol, atol)
    public = (*vars(builtins), *ERRORS)
    if next(name for name in theirs["refused"] if name in public) in ours["refused"]:
        return ""
    return f"refused with {ours}, by TensorFlow with {theirs}"


def _apart(where, ours, theirs, rtol, atol):
    if isinstance(theirs, dict) and isinstance(ours, dict) and set(ours) == set(theirs):
        if set(theirs) == {"float"}:
            close = np.isclose(float(ours["float"]), float(theirs["float"]), rtol, atol, True)
            return "" if close else f"{where} is {ours['float']}, TensorFlow's {theirs['float']}"
        if "array" in theirs and theirs["array"].startswith(("float", "complex")):
            numbers = [np.asarray(x["value"], float) for x in (ours, theirs)]
            kinds = [(x["array"], x["shape"]) for x in (ours, theirs)]
            if kinds[0] == kinds[1] and np.allclose(*numbers, rtol=rtol, atol=atol, equal_nan=True):
                return ""
            return f"{where} is {ours}, TensorFlow's {theirs}"
        found = (_apart(f"{where}.{k}", ours[k], theirs[k], rtol, atol) for k in theirs)
        return next((x for x in found if x), "")
    if isinstance(theirs, list) and isinstance(ours, list) and len(ours) == len(theirs):
        pairs = enumerate(zip(ours, theirs))  # noqa: B905 - Python 3.7
        found = (_apart(f"{where}[{i}]", a, b, rtol, atol) for i, (a, b) in pairs)
        return next((x for x in found if x), "")
    return "" if ours == theirs else f"{where} is {ours!r}, TensorFlow's {theirs!r}"


def _write(library, path, only_missing):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    lines = [text.split("\n## ")[0].rstrip(), ""]
    for title, program, known in read(text):
        found = known if only_missing and known else outcome(library, program)
        lines += [f"## {title}", program, MARK + json.dumps(found, ensure_ascii=True), ""]
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))


if __name__ == "__main__":
    import tensorflow

    tensorflow.compat.v1.logging.set_verbosity("ERROR")
    for name in sys.argv[1:]:
        if name != "--missing":
            _write(tensorflow, name, "--missing" in sys.argv)
