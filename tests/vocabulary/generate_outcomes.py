"""What a small program comes to: in Headrace and, under Python 3.7, in TensorFlow 1.15.5 alike.

A program is a few lines of Python with the library as ``T`` and NumPy as ``np``. What its last
line yields is fetched. The files of ``programs`` hold programs, each with the outcome that
TensorFlow 1.15.5 gave; run under TensorFlow's Python, this file writes those outcomes anew::

    python3.7 tests/vocabulary/generate_outcomes.py tests/vocabulary/programs/*.txt

With ``--outcomes``, it adds those of a JSON list of programs to another file, a line each.
"""

from __future__ import annotations

import ast
import json
import sys
import warnings

import numpy as np

MARK = "=> "
BEFORE = "(before)"


def read(text):
    """Return (title, program, outcome) for each program of a file; None where it has none yet.

    What stands under the title ``(before)`` begins each program after it.
    """
    found = []
    before = ""
    for title, program, outcome in _blocks(text):
        if title == BEFORE:
            before = program + "\n"
        else:
            found.append((title, before + program, outcome))
    return found


def _blocks(text):
    """Return the titles of a file with what stands under each."""
    found = []
    for block in text.split("\n## ")[1:]:
        title, _, rest = block.partition("\n")
        lines = rest.rstrip().splitlines()
        outcome = None
        if lines and lines[-1].startswith(MARK):
            outcome = json.loads(lines.pop()[len(MARK) :])
        found.append((title, "\n".join(lines), outcome))
    return found


def outcome(library, program, session=None):
    """Return what a program comes to, in a new graph, as plain data.

    Args:
        library: ``headrace`` or ``tensorflow``.
        program: Its lines.
        session: Makes a session.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"), library.Graph().as_default():
        warnings.simplefilter("ignore")
        try:
            return {"result": _described(library, _result(library, program), session)}
        except Exception as error:
            families = [c.__name__ for c in type(error).__mro__ if c is not object]
            return {"refused": families, "message": str(error).strip().split("\n")[0][:300]}


def _result(library, program):
    tree = ast.parse(program)
    last = tree.body.pop()
    names = {"T": library, "np": np}
    exec(compile(tree, "<program>", "exec"), names)
    return eval(compile(ast.Expression(last.value), "<program>", "eval"), names)


def _described(library, result, session):
    """Return the parts of a result: of tensors the dtype, the static shape and the value."""
    leaves = _leaves(library, result)
    tensors = [t for t in leaves if isinstance(t, (library.Tensor, library.Operation))]
    values = iter(())
    if tensors:
        with (session or library.Session)() as opened:
            opened.run([library.global_variables_initializer(), library.tables_initializer()])
            values = iter(opened.run(tensors))
    parts = []
    for leaf in leaves:
        if isinstance(leaf, library.Tensor):
            static = leaf.shape.as_list() if leaf.shape.ndims is not None else None
            parts.append({"static": static, **_array(next(values))})
        elif isinstance(leaf, library.Operation):
            parts.append({"operation": next(values)})
        elif isinstance(leaf, (np.ndarray, np.generic)):
            parts.append(_array(leaf))
        else:
            parts.append({"is": leaf if leaf is None or type(leaf) is bool else str(leaf)})
    return parts


def _leaves(library, value):
    if isinstance(value, dict):
        return [x for key in sorted(value) for x in _leaves(library, value[key])]
    if isinstance(value, library.SparseTensor):
        return [value.indices, value.values, value.dense_shape]
    if isinstance(value, library.RaggedTensor):
        return [value.flat_values, *value.nested_row_splits]
    if isinstance(value, library.IndexedSlices):
        return [library.constant("IndexedSlices"), value.values, value.indices]
    if isinstance(value, (list, tuple)):
        return [x for item in value for x in _leaves(library, item)]
    return [value.value() if isinstance(value, library.Variable) else value]


def _array(value):
    array = np.asarray(value)
    if array.dtype.kind in "OSU":
        items = [x.decode("latin1") if isinstance(x, bytes) else str(x) for x in array.reshape(-1)]
        return {"dtype": "string", "shape": list(array.shape), "value": items}
    if array.dtype.kind == "c":
        parts = np.stack([array.real, array.imag], -1)
        return {"dtype": str(array.dtype), "shape": list(array.shape), "value": _numbers(parts)}
    return {"dtype": str(array.dtype), "shape": list(array.shape), "value": _numbers(array)}


def _numbers(array):
    """Return the elements, floats with as many digits as float32 has, as JSON can hold them."""
    if array.dtype.kind in "biu":
        return array.reshape(-1).tolist()
    return [f"{float(x):.7g}" for x in array.reshape(-1)]


def difference(ours, theirs, rtol=2e-4, atol=1e-5):
    """Return what tells two outcomes apart, in words; empty where nothing does."""
    if ("refused" in ours) != ("refused" in theirs):
        return f"ours {ours}, TensorFlow's {theirs}"
    if "refused" in theirs:
        if theirs["refused"][0] in ours["refused"] or _same_family(ours, theirs):
            return ""
        return f"refused with {ours['refused']}, by TensorFlow with {theirs['refused']}"
    if len(ours["result"]) != len(theirs["result"]):
        return f"{len(ours['result'])} parts, TensorFlow has {len(theirs['result'])}"
    for i, (a, b) in enumerate(zip(ours["result"], theirs["result"])):  # noqa: B905 - Python 3.7
        if not set(a) >= set(b):
            return f"part {i} is {a}, TensorFlow's {b}"
        for key in b:
            if key == "value" and a.get("dtype") == b["dtype"] and a["shape"] == b["shape"]:
                if not _close(a, b, rtol, atol):
                    return f"part {i} is {a['value']}, TensorFlow's {b['value']}"
            elif key == "static" and _covers(b[key], a.get(key)):
                continue
            elif a.get(key) != b[key]:
                return f"part {i} has {key} {a.get(key)}, TensorFlow's {b[key]}"
    return ""


def _covers(general, special):
    """Whether a static shape says at least as much as another one."""
    if general is None or special is None:
        return general is None
    pairs = zip(general, special)  # noqa: B905 - Python 3.7
    return len(general) == len(special) and all(g is None or g == s for g, s in pairs)


def _same_family(ours, theirs):
    """Whether both refuse what a program gave: by Python's errors, or by those of a step."""
    wrong = {"ValueError", "TypeError", "InvalidArgumentError"}
    return bool(wrong & set(ours["refused"])) and bool(wrong & set(theirs["refused"]))


def _close(a, b, rtol, atol):
    if a["dtype"] in ("string", "bool") or "int" in a["dtype"]:
        return a["value"] == b["value"]
    half = a["dtype"] in ("float16", "bfloat16")
    numbers = [np.asarray(x["value"], float) for x in (a, b)]
    if half:
        # Sums of terms of about 1, as gradients are, end a few units of 2^-11 from one another.
        rtol, atol = rtol * 16, 2.0**-9
    return np.allclose(*numbers, rtol=rtol, atol=atol, equal_nan=True)


def _write(library, path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    lines = [text.split("\n## ")[0].rstrip(), ""]
    before = ""
    for title, program, _ in _blocks(text):
        lines += [f"## {title}", program]
        if title == BEFORE:
            before = program + "\n"
        else:
            found = json.dumps(outcome(library, before + program), ensure_ascii=True)
            lines.append(MARK + found)
        lines.append("")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))


if __name__ == "__main__":
    import tensorflow

    tensorflow.compat.v1.logging.set_verbosity("ERROR")
    if sys.argv[1] == "--outcomes":
        with open(sys.argv[2], encoding="utf-8") as file:
            programs = json.load(file)
        with open(sys.argv[3], "a", encoding="utf-8") as outcomes:
            for program in programs:
                outcomes.write(json.dumps(outcome(tensorflow, program)) + "\n")
                outcomes.flush()
    else:
        for name in sys.argv[1:]:
            _write(tensorflow, name)
