"""From arrays to the JSON of an answer, in TensorFlow Serving's forms."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from headrace_serve.errors import BAD_REQUEST, INTERNAL, UNIMPLEMENTED, RequestError
from headrace_serve.models.signature import Array, Arrays

# Outputs whose names end so hold bytes, which are no text.
_BYTES_SUFFIX = "_bytes"
# The names of what a model that classifies puts out.
_CLASSES, _SCORES = "classes", "scores"


def write(answer: Mapping[str, Any]) -> bytes:
    """Return the JSON of an answer; what is no number is ``NaN``, ``Infinity``, ``-Infinity``."""
    return json.dumps(answer, separators=(",", ":")).encode()


def by_rows(outputs: Arrays, rows: int) -> dict[str, Any]:
    """Return the answer to a request by rows: a value, or an object with values, per row.

    Raises:
        RequestError: if an output does not have one value per row.
    """
    for name, array in outputs.items():
        if array.ndim == 0 or len(array) != rows:
            raise RequestError(
                BAD_REQUEST,
                f"the output {name!r} has the shape {list(array.shape)} for {rows} instances; "
                "ask with 'inputs', by columns, as it has no value per row",
            )
    values = {name: _jsonable(name, array) for name, array in outputs.items()}
    if len(values) == 1:
        return {"predictions": next(iter(values.values()))}
    columns = zip(*values.values(), strict=True)
    return {"predictions": [dict(zip(values, row, strict=True)) for row in columns]}


def by_columns(outputs: Arrays) -> dict[str, Any]:
    """Return the answer to a request by columns: a value, or an object with values by name."""
    values = {name: _jsonable(name, array) for name, array in outputs.items()}
    return {"outputs": next(iter(values.values())) if len(values) == 1 else values}


def of_classes(outputs: Arrays, examples: int) -> dict[str, Any]:
    """Return the answer to a request to classify: for each example its labels with their scores.

    Args:
        outputs: ``classes``, strings, or ``scores``, or both, [examples, classes].
        examples: How many there are.

    Raises:
        RequestError: if the outputs are others.
    """
    found = {name: outputs[name] for name in (_CLASSES, _SCORES) if name in outputs}
    shapes = {array.shape for array in found.values()}
    if len(shapes) != 1 or any(len(s) != 2 or s[0] != examples for s in shapes):
        told = {name: list(array.shape) for name, array in outputs.items()}
        raise RequestError(
            INTERNAL,
            f"the model does not classify: expected outputs {_CLASSES!r} or {_SCORES!r} of the "
            f"shape [{examples}, ?], got {told}",
        )
    shape = shapes.pop()
    labels = _jsonable(_CLASSES, found.get(_CLASSES, np.full(shape, "", object)))
    scores = _jsonable(_SCORES, found.get(_SCORES, np.zeros(shape, np.float32)))
    return {
        "results": [
            [list(pair) for pair in zip(*several, strict=True)]
            for several in zip(labels, scores, strict=True)
        ]
    }


def of_regression(outputs: Arrays, examples: int) -> dict[str, Any]:
    """Return the answer to a request to regress: one number per example.

    Raises:
        RequestError: if the model has no output ``outputs`` of that shape.
    """
    array = outputs.get("outputs")
    if array is None or array.shape not in ((examples,), (examples, 1)):
        told = {name: list(array.shape) for name, array in outputs.items()}
        raise RequestError(
            INTERNAL,
            f"the model does not regress: expected an output 'outputs' of the shape [{examples}] "
            f"or [{examples}, 1], got {told}",
        )
    return {"results": _jsonable("outputs", array.reshape(examples))}


def _jsonable(name: str, array: Array) -> Any:
    """Return an array as nested lists of what JSON has."""
    kind = array.dtype.kind
    if kind in "OSU":
        return _strings(array, as_base64=name.endswith(_BYTES_SUFFIX))
    if kind in "biu":
        return array.tolist()
    if kind == "f" and array.dtype.itemsize == 8:
        return array.tolist()
    if kind == "f" or array.dtype.name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        # The shortest digits that read as the same number: 0.1, and not 0.10000000149011612.
        narrow = array if kind == "f" else array.astype(np.float32)
        return narrow.astype("U32").astype(np.float64).tolist()
    raise RequestError(
        UNIMPLEMENTED, f"the output {name!r}: JSON has no form for values of {array.dtype.name}"
    )


def _strings(array: Array, *, as_base64: bool) -> Any:
    written = np.empty(array.shape, object)
    written.reshape(-1)[:] = [_string(item, as_base64) for item in array.reshape(-1).tolist()]
    return written.tolist()


def _string(item: Any, as_base64: bool) -> str | dict[str, str]:
    """Return text as it is, and as base64 what is none or must not be read as such."""
    if isinstance(item, str):
        item = item.encode()
    if not as_base64:
        try:
            text: str = item.decode()
            return text
        except UnicodeDecodeError:
            pass
    return {"b64": base64.b64encode(item).decode()}
