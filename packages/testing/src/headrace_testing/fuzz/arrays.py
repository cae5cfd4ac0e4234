"""Random arrays: shapes with empty dimensions, and values that kernels stumble over."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import headrace as hr
from headrace import DType
from headrace.extend.ops import ALL_DTYPES
from headrace_testing.inputs import NDArray

Rng = np.random.Generator

MAX_RANK = 5
MAX_DIM = 5
# More elements than this only cost time.
MAX_ELEMENTS = 512

# What sizes, counts, axes and bounds are set to.
HUGE = (2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1)
EXTREME = (*HUGE, -(2**31), -(2**31) - 1, -(2**40), -(2**62), -(2**63))
_WORDS = (
    b"",
    b" ",
    b"a",
    b"ab cd",
    b"12",
    b"-7",
    b"3.5e8",
    b"nan",
    b"1e400",
    b"99999999999999999999",
    b"a,b,,c",
    b'"x,y"',
    b"YWJj",
    b"YW=",
    b"\x00\xff",
    b"\xed\xa0\x80",
    "größer".encode(),
    b"(a",
    b"[",
    b"\\1",
    b"a{1000000}",
    b"(a*)*b",
    b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    b"%s{}",
)

DENSE = tuple(d for d in ALL_DTYPES if d.kind not in ("resource", "list", "quantized"))
_USUAL = tuple(
    d for d in DENSE if d.name in ("float32", "float64", "int32", "int64", "bool", "complex64")
)


def pick(rng: Rng, items: Any) -> Any:
    """Return one of several items."""
    return items[int(rng.integers(len(items)))]


def any_dtype(rng: Rng) -> DType:
    """Return a dtype, mostly a usual one."""
    chosen: DType = pick(rng, _USUAL if rng.random() < 0.6 else DENSE)
    return chosen


def any_dim(rng: Rng) -> int:
    """Return a small size, zero at times."""
    return 0 if rng.random() < 0.08 else int(rng.integers(1, MAX_DIM + 1))


def any_shape(rng: Rng) -> tuple[int, ...]:
    """Return a shape of rank 0 to 5."""
    rank = int(rng.choice(MAX_RANK + 1, p=[0.1, 0.22, 0.25, 0.18, 0.17, 0.08]))
    return bounded(tuple(any_dim(rng) for _ in range(rank)))


def bounded(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape with fewer elements if there are too many."""
    while math.prod(shape) > MAX_ELEMENTS:
        largest = max(range(len(shape)), key=lambda i: shape[i])
        shape = tuple(d // 2 if i == largest else d for i, d in enumerate(shape))
    return shape


def similar_shape(rng: Rng, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape that often goes with another one: equal, a part of it, or broadcast."""
    way = rng.random()
    if way < 0.45:
        return shape
    if way < 0.55:
        return shape[int(rng.integers(len(shape) + 1)) :]
    if way < 0.65:
        return shape[: int(rng.integers(len(shape) + 1))]
    if way < 0.75:
        return tuple(1 if rng.random() < 0.5 else d for d in shape)
    return changed_shape(rng, shape) if way < 0.9 else any_shape(rng)


def changed_shape(rng: Rng, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape with one dimension changed, added, left out or moved."""
    dims = list(shape)
    way = int(rng.integers(4))
    if way == 0 or not dims:
        dims.insert(int(rng.integers(len(dims) + 1)), any_dim(rng))
    elif way == 1:
        dims.pop(int(rng.integers(len(dims))))
    elif way == 2:
        dims[int(rng.integers(len(dims)))] = any_dim(rng)
    else:
        dims = [dims[i] for i in rng.permutation(len(dims))]
    return bounded(tuple(dims))


def any_int(rng: Rng) -> int:
    """Return an integer: mostly small, negative at times, extreme at times."""
    way = rng.random()
    if way < 0.6:
        return int(rng.integers(0, 7))
    if way < 0.8:
        return int(rng.integers(-7, 0))
    return int(pick(rng, EXTREME if way < 0.95 else HUGE))


def any_float(rng: Rng) -> float:
    """Return a float, a special one at times."""
    if rng.random() < 0.6:
        return float(np.round(rng.normal(0, 2), 3))
    special = (0.0, -0.0, 1.0, -1.0, math.nan, math.inf, -math.inf, 1e300, -1e300, 1e-300)
    return float(pick(rng, special))


def any_array(rng: Rng, dtype: DType, shape: tuple[int, ...]) -> NDArray:
    """Return an array of random values: usual, extreme, or a mixture."""
    if dtype.kind == "string":
        flat = np.empty(math.prod(shape), object)
        for i in range(flat.size):
            flat[i] = pick(rng, _WORDS)
        return flat.reshape(shape)
    if dtype.is_bool:
        return np.asarray(rng.random(shape) < 0.5)
    fill = _integers if dtype.is_integer else _numbers
    with np.errstate(all="ignore"):
        return np.asarray(fill(rng, dtype, shape)).astype(dtype.numpy)


def spoiled(rng: Rng, array: NDArray) -> NDArray:
    """Return a copy of an array with one element, or more, replaced by special values."""
    changed = array.copy()
    if not changed.size or changed.dtype == bool:
        return changed
    count = 1 if rng.random() < 0.7 else int(rng.integers(1, changed.size + 1))
    flat = changed.reshape(-1)
    places = rng.integers(0, changed.size, count)
    if changed.dtype == object:
        flat[places] = pick(rng, _WORDS)
        return changed
    dtype = hr.as_dtype(changed.dtype)
    if rng.random() < 0.4 and dtype.is_integer:
        values = _clipped(np.asarray(rng.integers(-3, 8, count), object), dtype)
    else:
        values = _special(rng, dtype, (count,))
    with np.errstate(all="ignore"):
        flat[places] = values.astype(changed.dtype)
    return changed


def _integers(rng: Rng, dtype: DType, shape: tuple[int, ...]) -> Any:
    way = rng.random()
    if way < 0.45:
        return np.asarray(rng.integers(0, 5, shape))
    if way < 0.6:
        return _clipped(np.asarray(rng.integers(-4, 8, shape)).astype(object), dtype)
    if way < 0.7:
        return np.full(shape, pick(rng, (0, 1, 2)))
    few = np.asarray(rng.integers(0, 4, shape)).astype(object)
    special = _special(rng, dtype, shape)
    return np.where(rng.random(shape) < 0.6, few, special) if way < 0.85 else special


def _numbers(rng: Rng, dtype: DType, shape: tuple[int, ...]) -> Any:
    way = rng.random()
    usual = np.asarray(rng.normal(0, 2, shape))
    if dtype.is_complex:
        usual = usual + 1j * np.asarray(rng.normal(0, 2, shape))
    if way < 0.5:
        return usual
    if way < 0.65:
        return np.asarray(rng.random(shape))
    if way < 0.75:
        return np.full(shape, pick(rng, (0.0, 1.0, -1.0)))
    special = _special(rng, dtype, shape)
    return np.where(rng.random(shape) < 0.6, usual, special) if way < 0.92 else special


def _special(rng: Rng, dtype: DType, shape: tuple[int, ...]) -> NDArray:
    if dtype.is_integer:
        limits = [dtype.min, dtype.max, dtype.max - 1, -1, 0, 2**31, 2**40, 2**62, -(2**31)]
        table = _clipped(np.array(limits, object), dtype)
    else:
        width = np.float64 if dtype.itemsize >= (16 if dtype.is_complex else 8) else np.float32
        info = np.finfo(width)
        table = np.array(
            [np.nan, np.inf, -np.inf, 0.0, -0.0, info.max, info.min, info.tiny, 1e-45, 1e10, -1e18]
        )
    return np.asarray(table[rng.integers(0, len(table), shape)])


def _clipped(values: NDArray, dtype: DType) -> NDArray:
    low, high = int(dtype.min), int(dtype.max)
    flat = np.empty(values.size, object)
    for i, value in enumerate(values.reshape(-1).tolist()):
        flat[i] = min(max(int(value), low), high)
    return flat.reshape(values.shape)
