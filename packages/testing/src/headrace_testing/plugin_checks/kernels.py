"""Checks of each kernel by itself: one that is never the best candidate is called all the same."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace import Operation
from headrace.errors import HeadraceError
from headrace.extend.kernels import Kernel, kernel_dtype
from headrace_testing.build import Bench, Outcome, Values, Variant, flat, make_values, swept
from headrace_testing.checks.forward import compare
from headrace_testing.checks.layouts import strided
from headrace_testing.failure import SkipCheck, fail
from headrace_testing.inputs import NDArray
from headrace_testing.plugin_checks.bound import bound, open_device, results_of
from headrace_testing.sample import Sample


@dataclass(frozen=True, slots=True)
class _Call:
    """A kernel, ready to be called on the arrays of a sample."""

    label: str
    values: Values
    op: Operation
    call: Callable[..., Any]
    device: Any

    def results(self, arrays: list[NDArray]) -> list[NDArray]:
        return results_of(self.call, arrays, self.op, self.device)


def check_alone(sample: Sample, device: str, kernel: Kernel) -> None:
    """Call a kernel directly: its values, dtypes and shapes, and what becomes of its inputs."""
    made = 0
    for found in calls_of(sample, device, kernel):
        made += 1
        arrays = [a.copy() for a in flat(found.values)]
        results = _tried(sample, device, kernel, found, arrays)
        _check_kept(sample, device, kernel, found, arrays)
        _check_specs(sample, device, kernel, found, results)
        _check_sharing(sample, device, kernel, found, arrays, results)
        chosen = found.op.outputs
        if sample.outputs is not None:
            chosen = tuple(found.op.outputs[i] for i in sample.outputs)
        shown = [results[t.index] for t in chosen]
        variant = Variant(f"{found.label}, kernel at {kernel.where}", found.values)
        compare(sample, device, Outcome(variant, found.op, chosen, shown))
        _check_repeats(sample, device, kernel, found, results)
        _check_layouts(sample, device, kernel, found, results)
        _check_lets_go(sample, device, kernel, found)
    if not made:
        raise SkipCheck(f"the kernel at {kernel.where} takes none of the dtypes, or only waits")


def calls_of(sample: Sample, device: str, kernel: Kernel) -> Iterator[_Call]:
    """Yield the calls of a kernel on the arrays of a sample, one for each dtype that it takes."""
    opened = open_device(device.split(":")[0])
    if opened.xp is not np:
        raise SkipCheck(f"arrays of {device} are not NumPy's: steps check its kernels")
    for dtype in swept(sample):
        bench = Bench(sample, device)
        values = make_values(sample.inputs, dtype, sample.seed)
        label = str(dtype or "own dtypes")
        op = bench.add(Variant(label, values))
        if op is None or not kernel.accepts(kernel_dtype(op)):
            continue
        call = bound(kernel, op, opened)
        if call is not None:
            yield _Call(label, values, op, call, opened)


def _tried(
    sample: Sample, device: str, kernel: Kernel, found: _Call, arrays: list[NDArray]
) -> list[NDArray]:
    try:
        return found.results(arrays)
    except Exception as error:
        text = str(error) if isinstance(error, HeadraceError) else repr(error)
        problem = f"the kernel at {kernel.where} fails: {text}"
        raise fail(sample, device, found.label, problem, flat(found.values)) from error


def _check_kept(
    sample: Sample, device: str, kernel: Kernel, found: _Call, arrays: list[NDArray]
) -> None:
    for i, (before, after) in enumerate(zip(flat(found.values), arrays, strict=True)):
        same = before.tobytes() == after.tobytes() if before.dtype != object else None
        if same is False or (same is None and list(before.flat) != list(after.flat)):
            problem = f"the kernel at {kernel.where} writes into its input {i}"
            raise fail(sample, device, found.label, problem, flat(found.values))


def _check_specs(
    sample: Sample, device: str, kernel: Kernel, found: _Call, results: list[NDArray]
) -> None:
    for tensor, result in zip(found.op.outputs, results, strict=True):
        fits = tensor.shape.is_compatible_with(result.shape)
        if tensor.dtype.numpy != result.dtype or not fits:
            problem = (
                f"the kernel at {kernel.where} yields {result.dtype}{list(result.shape)} for "
                f"output {tensor.index}, declared {tensor.spec}"
            )
            raise fail(sample, device, found.label, problem, flat(found.values))


def _check_sharing(
    sample: Sample,
    device: str,
    kernel: Kernel,
    found: _Call,
    arrays: list[NDArray],
    results: list[NDArray],
) -> None:
    shared = unstated_sharing(found.op, arrays, results)
    if shared:
        problem = (
            f"the kernel at {kernel.where} returns the memory of its {shared}, which the op does "
            "not state: return a copy, or declare the op with aliases=[...]"
        )
        raise fail(sample, device, found.label, problem)


def unstated_sharing(op: Operation, arrays: list[NDArray], results: list[NDArray]) -> str:
    """Return which input's memory a result shares though the op does not say so; "" for none.

    Args:
        op: The operation.
        arrays: Its inputs.
        results: What its kernel made of them.
    """
    stated = op.schema.flat_places(op.arity, op.schema.may_share)
    for place, array in enumerate(arrays):
        if place not in stated and any(np.shares_memory(array, result) for result in results):
            return f"input {place}"
    return ""


def _check_repeats(
    sample: Sample, device: str, kernel: Kernel, found: _Call, results: list[NDArray]
) -> None:
    if found.op.schema.stateful:
        return
    for _ in range(3):
        again = found.results([a.copy() for a in flat(found.values)])
        if not all(map(same_bits, results, again)):
            problem = (
                f"the kernel at {kernel.where} yields other bits when it is called again with the "
                "same inputs; an op that draws or keeps something says stateful=True"
            )
            raise fail(sample, device, found.label, problem, flat(found.values))


def _check_layouts(
    sample: Sample, device: str, kernel: Kernel, found: _Call, results: list[NDArray]
) -> None:
    if found.op.schema.stateful:
        return
    for label, arrange in (("strided", strided), ("read-only", _locked)):
        arrays = [arrange(a) for a in flat(found.values)]
        got = _tried(sample, device, kernel, found, arrays)
        for i, (one, two) in enumerate(zip(results, got, strict=True)):
            if one.shape != two.shape or not _near(one, two):
                problem = (
                    f"the kernel at {kernel.where} yields another output {i} for {label} inputs "
                    "with the same values"
                )
                raise fail(sample, device, found.label, problem, flat(found.values))


def _check_lets_go(sample: Sample, device: str, kernel: Kernel, found: _Call) -> None:
    """Check that nothing refers to the inputs when the results are gone."""
    if getattr(found.op.schema, "keeps_inputs", found.op.schema.stateful):
        return
    arrays = [a.copy() for a in flat(found.values)]
    alive = [weakref.ref(a) for a in arrays]
    found.results(arrays)
    del arrays
    gc.collect()
    for i, reference in enumerate(alive):
        if reference() is not None:
            problem = (
                f"the kernel at {kernel.where} keeps its input {i} after the call: it must copy "
                "what it wants to keep"
            )
            raise fail(sample, device, found.label, problem)


def same_bits(one: NDArray, two: NDArray) -> bool:
    """Whether two arrays are the same, bit by bit."""
    if one.shape != two.shape or one.dtype != two.dtype:
        return False
    if one.dtype == object:
        return list(one.flat) == list(two.flat)
    return one.tobytes() == two.tobytes()


def _near(one: NDArray, two: NDArray) -> bool:
    """Whether arrays agree but for the order of sums, which layouts may change."""
    if one.dtype.kind not in "fcV" or one.dtype == object:
        return same_bits(one, two)
    wide = np.complex128 if one.dtype.kind == "c" else np.float64
    eps = 1e-3 if one.dtype.itemsize <= 2 else 1e-5 if one.dtype.itemsize == 4 else 1e-12
    a, b = one.astype(wide), two.astype(wide)
    return bool(np.allclose(a, b, rtol=eps, atol=eps, equal_nan=True))


def _locked(array: NDArray) -> NDArray:
    kept = array.copy()
    kept.flags.writeable = False
    return kept
