"""Total checks: what is said to fail for no values is run on values that break what may fail."""

from __future__ import annotations

import numpy as np

from headrace import Config, DType
from headrace.extend.ops import OPS
from headrace.extend.scalars import is_total
from headrace_testing.build import (
    CONSTANT,
    Bench,
    Values,
    Variant,
    flat,
    make_values,
    one_per_kind,
    swept,
)
from headrace_testing.failure import fail
from headrace_testing.inputs import NDArray
from headrace_testing.sample import Sample


def check_total(sample: Sample, device: str) -> None:
    """Run an op that may run unasked on zeros, extremes, infinities and NaN.

    What its kernels read on the host stays as it is: its rule has seen that.
    """
    for dtype in one_per_kind(swept(sample)):
        _run(sample, device, dtype)


def _run(sample: Sample, device: str, dtype: DType | None) -> None:
    """Run the sample with values of one dtype, unless it may fail for them."""
    values = make_values(sample.inputs, dtype, sample.seed)
    hosts = {
        id(array)
        for param, entry in zip(OPS[sample.op].inputs, values, strict=True)
        if param.on_host
        for array in flat([entry])
    }
    harsh: Values = []
    for entry in values:
        if isinstance(entry, list):
            harsh.append([a if id(a) in hosts else extremes(a) for a in entry])
        else:
            harsh.append(entry if entry is None or id(entry) in hosts else extremes(entry))
    bench = Bench(sample, device)
    label = f"extremes {dtype or ''}".strip()
    op = bench.add(Variant(label, harsh, lambda a: CONSTANT if id(a) in hosts else a.shape))
    if op is None or not is_total(op):
        return
    try:
        for executor in ("plan", "plain"):
            bench.run(Config(executor=executor))
    except Exception as error:
        problem = f"the op is total, and fails\n{error}"
        raise fail(sample, device, label, problem, flat(harsh)) from error


def extremes(array: NDArray) -> NDArray:
    """Return an array of the same shape and dtype with the values at which functions break."""
    kind = array.dtype.kind
    values: list[float]
    if kind in "iu":
        limits = np.iinfo(array.dtype)
        values = [0, limits.min, limits.max, 1, limits.max // 2, limits.min // 2]
    elif kind in "fc" or kind == "V":  # bfloat16 is of kind V
        largest = 3e38 if array.dtype.itemsize > 2 else 6e4
        values = [np.nan, 0.0, np.inf, -0.0, -np.inf, largest, -largest, -1.0, 1.0, 1e-45]
    else:
        return array
    with np.errstate(all="ignore"):
        filled = np.resize(np.array(values, array.dtype), array.shape)
    return filled if array.size else array
