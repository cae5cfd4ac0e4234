"""Requests to classify and to regress: examples, as TensorFlow has them, written in JSON."""

from __future__ import annotations

from typing import Any

import numpy as np

import headrace_io as io
from headrace_serve.errors import refuse
from headrace_serve.models.signature import Array, Signature
from headrace_serve.requests.arrays import decoded, is_base64, json_name

_LONGEST = 1 << 63
_LARGEST = float(np.finfo(np.float32).max)


def example_inputs(request: dict[str, Any], signature: Signature) -> dict[str, Array]:
    """Return the array of serialized examples that a request lists, by the name of the input.

    Args:
        request: Has ``examples``, a list of objects from names of features to a value or a list of
            values, and perhaps ``context``, features that all of them share.
        signature: Takes one vector of strings.

    Raises:
        RequestError: if the request is malformed, or the signature takes something else.
    """
    if len(signature.inputs) != 1 or not next(iter(signature.inputs.values())).is_string:
        listed = ", ".join(f"{n!r}: {info.dtype.name}" for n, info in signature.inputs.items())
        refuse(
            "the signature does not take examples: expected one input of strings, it has "
            f"{listed or 'none'}; ask it with :predict"
        )
    examples = request.get("examples")
    if not isinstance(examples, list):
        got = json_name(examples) if "examples" in request else "none"
        refuse(f"examples: expected a list of objects, got {got}")
    if not examples:
        refuse("examples: expected at least one, got an empty list")
    context = _features(request.get("context", {}), "context")
    serialized = np.empty(len(examples), object)
    for index, example in enumerate(examples):
        features = _features(example, f"examples[{index}]")
        twice = context.keys() & features.keys()
        if twice:
            refuse(f"examples[{index}]: the context has the feature {min(twice)!r}, too")
        message = io.Example(features=io.Features(feature={**context, **features}))
        serialized[index] = message.SerializeToString()
    return dict.fromkeys(signature.inputs, serialized)


def _features(features: Any, where: str) -> dict[str, Any]:
    if not isinstance(features, dict):
        refuse(f"{where}: expected an object of features, got {json_name(features)}")
    return {name: _feature(value, f"{where}[{name!r}]") for name, value in features.items()}


def _feature(value: Any, where: str) -> Any:
    """Return the feature of a value or a list of values, all of one kind."""
    values = value if isinstance(value, list) else [value]
    kinds = {_kind(item, where) for item in values}
    if len(kinds) > 1:
        refuse(f"{where}: expected values of one kind, got {' and '.join(sorted(kinds))}")
    if kinds == {"bytes"}:
        return io.Feature(bytes_list=io.BytesList(value=[decoded(item, where) for item in values]))
    if kinds == {"float"}:
        for item in values:
            if _LARGEST < abs(item) < float("inf"):
                refuse(f"{where}: float32 cannot hold {item}")
        return io.Feature(float_list=io.FloatList(value=values))
    if kinds == {"int64"}:
        for item in values:
            if not -_LONGEST <= item < _LONGEST:
                refuse(f"{where}: int64 cannot hold {item}")
        return io.Feature(int64_list=io.Int64List(value=[int(item) for item in values]))
    return io.Feature()


def _kind(value: Any, where: str) -> str:
    if isinstance(value, str) or is_base64(value):
        return "bytes"
    if isinstance(value, float):
        return "float"
    if not isinstance(value, int):
        refuse(f"{where}: expected numbers, truth values or strings, got {json_name(value)}")
    return "int64"
