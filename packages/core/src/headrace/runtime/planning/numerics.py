"""Checking numbers: finding the operation that first makes a NaN or an infinity.

Each operation runs by itself with its plain kernel, and what it yields is looked at before anything
else sees it. Numbers that are fed, constant, or come out of a variable or a queue may be what they
are; an operation is at fault when it makes a NaN where no input holds one, or an infinity where all
inputs are finite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from headrace.errors import NumericsError
from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace.runtime.builtin import ARGUMENTS
from headrace.runtime.devices.device import Device
from headrace.runtime.state.containers import VariableCell
from headrace.runtime.state.tensor_list import ListValue

_KINDS = ("float", "complex")


def checked(op: Operation, device: Device, call: Callable[..., Any]) -> Callable[..., Any]:
    """Return the call of an operation, refusing NaNs and infinities that it makes.

    An operation that changes a variable is tried on another cell first, so that the variable keeps
    its value when the operation is refused.

    Raises:
        NumericsError: by the result, if it makes any.
    """
    places = [i for i, t in enumerate(op.outputs) if _kind(t) in _KINDS]
    if not places or op.type == "Const" or op.type in ARGUMENTS:
        return call

    def run(*values: Any) -> Any:
        result = call(*values)
        many = isinstance(result, list | tuple) and (len(op.outputs) > 1 or len(result) == 1)
        outputs = result if many else (result,)
        _check(op, device, values, [(i, outputs[i]) for i in places if i < len(outputs)])
        return result

    changes = op.schema.changes and bool(op.inputs) and op.inputs[0].dtype.kind == "resource"
    if not changes:
        return run

    def change(cell: Any, *values: Any) -> Any:
        # Who replaces a value wholly makes none; the rest needs the old one.
        if not isinstance(cell, VariableCell) or not cell.initialized:
            return call(cell, *values)
        results: list[Any] = []

        def changed(old: Any) -> Any:
            trial = VariableCell(cell.name, cell.dtype, cell.shape)
            trial.assign(old)
            results.append(call(trial, *values))
            _check(op, device, (old, *values), [(0, trial.value)])
            return trial.value

        cell.update(changed)
        return results[0]

    return change


def _kind(tensor: Tensor) -> str:
    return tensor.dtype.kind


def _check(
    op: Operation, device: Device, values: Sequence[Any], outputs: Sequence[tuple[int, Any]]
) -> None:
    for index, value in outputs:
        nans, infinities, size = _count(device.xp, value)
        if not nans and not infinities:
            continue
        had_nan, had_infinity, known = _inputs(device, values)
        if not known or had_nan or (infinities and not nans and had_infinity):
            continue
        made = _made(nans, infinities)
        finite = "no NaN" if had_infinity else "finite numbers"
        tensor = op.outputs[index]
        raise NumericsError(
            f"{op.type} makes {made} among the {size} number{'s' if size != 1 else ''} of "
            f"{tensor.name!r}, out of {finite}{_ranges(op, device, values)}"
        )


def _made(nans: int, infinities: int) -> str:
    parts = []
    if nans:
        parts.append(f"{nans} NaN{'s' if nans > 1 else ''}")
    if infinities:
        parts.append(f"{infinities} infinit{'ies' if infinities > 1 else 'y'}")
    return " and ".join(parts)


def _count(xp: Any, value: Any) -> tuple[int, int, int]:
    """Return how many NaNs and infinities an array holds, and its size."""
    array = xp.asarray(value)
    finite = xp.isfinite(array)
    if bool(finite.all()):
        return 0, 0, int(array.size)
    nans = int(xp.isnan(array).sum())
    return nans, int(array.size) - int(finite.sum()) - nans, int(array.size)


def _inputs(device: Device, values: Sequence[Any]) -> tuple[bool, bool, bool]:
    """Return whether inputs hold a NaN, an infinity, and whether all of them can be looked at."""
    nan = infinity = False
    known = True
    for value in values:
        for array in _arrays(value, device):
            if array is None:
                known = False
            elif _numbers(array):
                nans, infinities, _ = _count(device.xp, array)
                nan, infinity = nan or nans > 0, infinity or infinities > 0
    return nan, infinity, known


def _arrays(value: Any, device: Device) -> Iterator[Any]:
    """Yield the arrays of a value; None for what cannot be looked at, such as a queue."""
    if isinstance(value, VariableCell):
        if value.initialized:
            yield value.read()
    elif isinstance(value, ListValue):
        for item in value.arrays(device):
            if item is not None:
                yield from _arrays(item, device)
    elif hasattr(value, "dtype") or isinstance(value, bool | int | float | complex | bytes | str):
        yield value
    else:
        yield None


def _numbers(array: Any) -> bool:
    dtype = getattr(array, "dtype", None)
    # NumPy calls bfloat16, which others define, a kind of its own.
    return dtype is not None and (dtype.kind in "fc" or dtype.name == "bfloat16")


def _ranges(op: Operation, device: Device, values: Sequence[Any]) -> str:
    """Return what the inputs hold, from the least to the greatest."""
    found = []
    # A variable's old value stands before the inputs in place of its handle.
    for tensor, value in zip(op.inputs, values, strict=False):
        if _numbers(value) and device.xp.asarray(value).size and value.dtype.kind != "c":
            low, high = float(value.min()), float(value.max())
            span = f"from {low:.6g} to {high:.6g}" if low != high else f"all {low:.6g}"
            name = tensor.op.origin if tensor.op.type == "Feed" else repr(tensor.name)
            found.append(f"{name} {span}")
    return ": " + ", ".join(dict.fromkeys(found)) if found else ""
