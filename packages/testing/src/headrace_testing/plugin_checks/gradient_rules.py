"""Checks of gradient rules: how many gradients they return, and in which dtypes and shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import headrace as hr
from headrace import DType, IndexedSlices, Session, Tensor, constant
from headrace import device as device_scope
from headrace.errors import NoKernelError
from headrace.extend.ops import OPS
from headrace_testing.build import Bench, Variant, flat, make_values, nested, swept
from headrace_testing.checks.forward import first_element
from headrace_testing.failure import SkipCheck, fail
from headrace_testing.inputs import NDArray
from headrace_testing.sample import Sample
from headrace_testing.tolerances import FORWARD

# A gradient passes through more kernels than a result, each of which rounds.
SLACK = 10.0


def check_gradient_rule(sample: Sample, device: str, rule: Callable[..., Any]) -> None:
    """Ask a rule for gradients in every dtype, and compare them with those in float64."""
    checked = 0
    for dtype, label, values in _calls(sample):
        found = _gradients(sample, device, rule, label, values)
        if found is None:
            continue
        checked += 1
        if dtype is not None and dtype.is_floating and dtype != hr.float64:
            widened = nested(lambda a: a.astype(np.float64) if _is_float(a) else a, values)
            wide = _gradients(sample, device, rule, "float64", widened)
            if wide is not None:
                _compare(sample, device, label, found, wide, SLACK * FORWARD[dtype.name])
    if not checked:
        raise SkipCheck(f"{device} has no kernel of {sample.op} for a dtype with gradients")


def _calls(sample: Sample) -> Iterator[tuple[DType | None, str, list[Any]]]:
    """Return the values of a sample in every dtype; broadcast against each other, too."""
    for dtype in swept(sample):
        values = make_values(sample.inputs, dtype, sample.seed)
        label = str(dtype or "own dtypes")
        yield dtype, label, values
        if OPS[sample.op].elementwise and len(values) > 1:
            for full in range(len(values)):
                mixed = [v if i == full else first_element(v) for i, v in enumerate(values)]
                yield dtype, f"{label} with input {full} full, the others scalars", mixed


def _gradients(
    sample: Sample, device: str, rule: Callable[..., Any], label: str, values: list[Any]
) -> list[NDArray | None] | None:
    bench = Bench(sample, device)
    op = bench.add(Variant(label, values))
    inexact = [y for y in op.outputs if y.dtype.is_floating] if op is not None else []
    if op is None or not inexact:
        return None

    def problem(text: str) -> Exception:
        return fail(sample, device, label, f"the gradient rule {_named(rule)} {text}", flat(values))

    with Session(graph=bench.graph) as session:
        results = [np.asarray(r) for r in session.run(list(op.outputs), bench.feeds)]
        with bench.graph.as_default(), device_scope(device):
            seeds = [
                constant(np.ones(r.shape, y.dtype.numpy)) if y in inexact else None
                for r, y in zip(results, op.outputs, strict=True)
            ]
            try:
                answer = rule(op, *seeds)
            except Exception as error:
                raise problem(f"raises {type(error).__name__}: {error}") from error
        if not isinstance(answer, list | tuple):
            raise problem(f"returns {type(answer).__name__}, expected a list of gradients")
        if len(answer) != len(op.inputs):
            raise problem(f"returns {len(answer)} gradients for {len(op.inputs)} inputs")
        found: list[NDArray | None] = []
        for i, (grad, x) in enumerate(zip(answer, op.inputs, strict=True)):
            if grad is None:
                found.append(None)
                continue
            if not isinstance(grad, Tensor | IndexedSlices):
                raise problem(f"returns {type(grad).__name__} for input {i}, expected a tensor")
            if grad.dtype != x.dtype:
                raise problem(f"returns {grad.dtype} for input {i}, which is {x.dtype}")
            with bench.graph.as_default(), device_scope(device):
                dense = hr.convert_to_tensor(grad)
            try:
                value = np.asarray(session.run(dense, bench.feeds))
            except NoKernelError as error:
                raise SkipCheck(str(error).splitlines()[0]) from error
            if value.shape != bench.feeds[x].shape:
                raise problem(
                    f"returns shape {list(value.shape)} for input {i} of shape "
                    f"{list(bench.feeds[x].shape)}; sum over what was broadcast"
                )
            found.append(value)
        return found


def _compare(
    sample: Sample,
    device: str,
    label: str,
    found: list[NDArray | None],
    wide: list[NDArray | None],
    limit: float,
) -> None:
    for i, (got, expected) in enumerate(zip(found, wide, strict=True)):
        if (got is None) != (expected is None):
            here, there = ("no", "a") if got is None else ("a", "no")
            text = f"there is {here} gradient of input {i} for {label}, and {there} one for float64"
            raise fail(sample, device, label, text)
        if got is None or expected is None:
            continue
        limits = limit + limit * np.abs(expected)
        error = np.abs(got.astype(np.float64) - expected)
        if bool(np.any(error > np.maximum(limits, limit * np.max(np.abs(expected), initial=0)))):
            text = (
                f"the gradient of input {i} for {label} is not the one for float64: the largest "
                f"difference is {float(error.max()):.3g} (tolerance {limit:.3g})"
            )
            raise fail(sample, device, label, text)


def _is_float(array: NDArray) -> bool:
    return array.dtype != object and hr.as_dtype(array.dtype).is_floating


def _named(rule: Callable[..., Any]) -> str:
    code = getattr(rule, "__code__", None)
    line = f":{code.co_firstlineno}" if code is not None else ""
    return f"at {getattr(rule, '__module__', '?')}{line}"
