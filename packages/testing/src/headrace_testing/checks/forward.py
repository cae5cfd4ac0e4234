"""Forward checks: parity with the oracle over all dtypes, and the scalar and empty variants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace_testing.build import (
    Outcome,
    Values,
    Variant,
    expectation,
    flat,
    make_values,
    nested,
    run_variants,
    swept,
)
from headrace_testing.failure import fail
from headrace_testing.inputs import NDArray
from headrace_testing.sample import Sample
from headrace_testing.tolerances import difference


def check_forward(sample: Sample, device: str) -> None:
    """Compare outputs with the oracle and with the inferred spec, for every dtype."""
    variants = [
        Variant(str(dtype or "own dtypes"), make_values(sample.inputs, dtype, sample.seed))
        for dtype in swept(sample)
    ]
    for outcome in run_variants(sample, device, variants):
        compare(sample, device, outcome)


def check_scalar(sample: Sample, device: str) -> None:
    """Run an elementwise op on the first element of each input, as arrays without dimensions."""
    _check_resized(sample, device, "0-d", first_element)


def check_empty(sample: Sample, device: str) -> None:
    """Run an elementwise op on inputs without elements."""
    _check_resized(sample, device, "empty", lambda a: np.zeros((0, 3), a.dtype))


def check_broadcast(sample: Sample, device: str) -> None:
    """Run an elementwise op with one full input, the others as scalars, each in turn."""
    dtype = swept(sample)[0]
    values = make_values(sample.inputs, dtype, sample.seed)
    variants = []
    for full in range(len(values)):
        mixed: Values = [a if i == full else first_element(a) for i, a in enumerate(values)]
        variants.append(Variant(f"{dtype} with input {full} full", mixed))
    for outcome in run_variants(sample, device, variants):
        compare(sample, device, outcome)


def first_element(array: NDArray) -> NDArray:
    """Return the first element as an array without dimensions; a one where there is none."""
    if array.size:
        return array.reshape(-1)[:1].reshape(())
    return np.array(b"" if array.dtype == object else 1, array.dtype)


def _check_resized(
    sample: Sample, device: str, label: str, resize: Callable[[NDArray], NDArray]
) -> None:
    variants = []
    for dtype in swept(sample):
        values = make_values(sample.inputs, dtype, sample.seed)
        variants.append(Variant(f"{label} {dtype or ''}".strip(), nested(resize, values)))
    for outcome in run_variants(sample, device, variants):
        compare(sample, device, outcome)


def compare(
    sample: Sample, device: str, outcome: Outcome, expected: list[Any] | None = None
) -> None:
    """Compare an outcome with its specs and with the oracle, or with ``expected``.

    Raises:
        ConformanceError: if they differ.
    """
    label, values = outcome.variant.label, flat(outcome.variant.values)
    for tensor, produced in zip(outcome.tensors, outcome.results, strict=True):
        if produced.dtype != tensor.dtype.numpy:
            problem = f"output {tensor.index} is declared {tensor.spec}, got {produced.dtype}"
            raise fail(sample, device, label, problem, values)
        if not tensor.shape.is_compatible_with(produced.shape):
            problem = (
                f"output {tensor.index} is declared {tensor.spec}, got shape {list(produced.shape)}"
            )
            raise fail(sample, device, label, problem, values)
    if expected is None and sample.oracle is None:
        assert sample.holds is not None
        if not sample.holds(outcome.results):
            raise fail(sample, device, label, f"the outputs are not right: {outcome.results}")
        return
    wanted = expectation(sample, outcome.variant.values) if expected is None else expected
    if len(wanted) != len(outcome.results):
        problem = f"the oracle gives {len(wanted)} outputs, the op {len(outcome.results)}"
        raise fail(sample, device, label, problem)
    for tensor, result, want in zip(outcome.tensors, outcome.results, wanted, strict=True):
        wrong = difference(result, want, tensor.dtype, sample.tolerance)
        if wrong:
            raise fail(sample, device, label, f"output {tensor.index}: {wrong}", values)
