"""Requests to predict: inputs by rows (``instances``) or by columns (``inputs``)."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from headrace_serve.errors import refuse
from headrace_serve.models.signature import Array, Signature, TensorInfo
from headrace_serve.requests.arrays import array_of, is_base64, json_name


def predict_inputs(request: dict[str, Any], signature: Signature) -> tuple[dict[str, Array], bool]:
    """Return the arrays of a request by the names of inputs, and whether they came by rows.

    Raises:
        RequestError: if the request does not fit the signature.
    """
    by_rows, by_columns = "instances" in request, "inputs" in request
    if by_rows == by_columns:
        got = "both" if by_rows else f"neither, but {', '.join(map(repr, request)) or 'nothing'}"
        refuse(f"expected one of 'instances' and 'inputs', got {got}")
    if by_rows:
        return _of_rows(request["instances"], signature.inputs), True
    return _of_columns(request["inputs"], signature.inputs), False


def _of_rows(rows: Any, inputs: Mapping[str, TensorInfo]) -> dict[str, Array]:
    if not isinstance(rows, list):
        refuse(f"instances: expected a list with a value per row, got {json_name(rows)}")
    if not rows:
        refuse("instances: expected at least one row, got an empty list")
    named = [isinstance(row, dict) and not is_base64(row) for row in rows]
    if not any(named):
        return {name: array_of(rows, inputs[name], "instances") for name in _only(inputs, rows[0])}
    if not all(named):
        index = named.index(not named[0])
        kind = "an object, as the first row is" if named[0] else "a value, as the first row is"
        refuse(f"instances[{index}]: expected {kind}, got {json_name(rows[index])}")
    for index, row in enumerate(rows):
        if row.keys() != inputs.keys():
            _refuse_names(row, inputs, f"instances[{index}]")
    # The place that a message names starts with the row.
    return {
        name: array_of([row[name] for row in rows], info, f"instances, input {name!r}")
        for name, info in inputs.items()
    }


def _of_columns(columns: Any, inputs: Mapping[str, TensorInfo]) -> dict[str, Array]:
    if isinstance(columns, dict) and not is_base64(columns):
        if columns.keys() != inputs.keys():
            _refuse_names(columns, inputs, "inputs")
        return {
            name: array_of(columns[name], info, f"inputs, input {name!r}")
            for name, info in inputs.items()
        }
    return {name: array_of(columns, inputs[name], "inputs") for name in _only(inputs, columns)}


def _only(inputs: Mapping[str, TensorInfo], got: Any) -> list[str]:
    """Return the name of the only input."""
    if len(inputs) != 1:
        refuse(
            f"expected an object with the inputs {_listed(inputs)} by name, got {json_name(got)}"
        )
    return list(inputs)


def _refuse_names(got: dict[str, Any], inputs: Mapping[str, TensorInfo], where: str) -> None:
    """Tell all names that are missing and all that are unknown, with the nearest ones."""
    faults = [f"{name!r} is missing" for name in inputs if name not in got]
    for name in list(got)[:10]:
        if name not in inputs:
            near = difflib.get_close_matches(name, list(inputs), 1)
            faults.append(
                f"{name!r} is unknown" + (f" (did you mean {near[0]!r}?)" if near else "")
            )
    refuse(f"{where}: expected the inputs {_listed(inputs)}: {', '.join(faults)}")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, sorted(names))) or "none"
