"""Layout checks: strided, reversed, Fortran-ordered and read-only inputs, none of them changed."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import HeadraceError
from headrace_testing.build import (
    Variant,
    flat,
    make_values,
    nested,
    one_per_kind,
    run_variants,
    swept,
)
from headrace_testing.checks.forward import compare
from headrace_testing.failure import fail
from headrace_testing.inputs import NDArray
from headrace_testing.sample import Sample


def check_layouts(sample: Sample, device: str) -> None:
    """Feed the same values in other memory layouts: the same results."""
    variants = [
        Variant(f"{label} {dtype or ''}".strip(), nested(arrange, values))
        for dtype, values in _values(sample)
        for label, arrange in (
            ("strided", strided),
            ("reversed", reversed_in_memory),
            ("Fortran-ordered", _fortran),
        )
    ]
    for outcome in run_variants(sample, device, variants):
        compare(sample, device, outcome)


def check_inputs_kept(sample: Sample, device: str) -> None:
    """Feed read-only arrays, and writable ones that must not change."""
    for dtype, values in _values(sample):
        text = str(dtype or "own dtypes")
        run_variants(sample, device, [Variant(f"read-only {text}", nested(_locked, values))])
        before = nested(np.copy, values)
        try:
            run_variants(sample, device, [Variant(f"writable {text}", values)])
        except HeadraceError as error:
            raise fail(sample, device, text, str(error)) from error
        for i, (old, new) in enumerate(zip(flat(before), flat(values), strict=True)):
            if not _identical(old, new):
                problem = f"the kernel changed its input {i}\n  it is now: {new}"
                raise fail(sample, device, text, problem, flat(before))


def strided(array: NDArray) -> NDArray:
    """Return the values as every second element of a larger array along each axis."""
    spread = np.zeros([2 * size for size in array.shape], array.dtype)
    index: tuple[Any, ...] = (*[slice(None, None, 2)] * array.ndim, ...)
    view: NDArray = spread[index]
    view[...] = array
    return view


def reversed_in_memory(array: NDArray) -> NDArray:
    """Return the values stored from last to first."""
    backwards: tuple[Any, ...] = (*[slice(None, None, -1)] * array.ndim, ...)
    stored: NDArray = array[backwards].copy(order="C")[backwards]
    return stored


def _fortran(array: NDArray) -> NDArray:
    return array.copy(order="F")


def _locked(array: NDArray) -> NDArray:
    kept = array.copy()
    kept.flags.writeable = False
    return kept


def _values(sample: Sample) -> list[tuple[object, list[object]]]:
    return [
        (dtype, make_values(sample.inputs, dtype, sample.seed))
        for dtype in one_per_kind(swept(sample))
    ]


def _identical(old: NDArray, new: NDArray) -> bool:
    if old.dtype == object:
        return bool((old == new).all())
    return old.tobytes() == new.tobytes()
