"""Samples of strided slices, written as the Python indices that they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import ShapeError
from headrace_testing.inputs import Input, array, integers, uniform
from headrace_testing.sample import Reject, Row, Sample


class _Index:
    def __getitem__(self, key: Any) -> tuple[Any, ...]:
        return key if isinstance(key, tuple) else (key,)


AT = _Index()


def encoded(key: tuple[Any, ...], dtype: str = "int32") -> tuple[list[Input], dict[str, Any]]:
    """Return the inputs begin, end and strides, and the attributes, that encode an index."""
    entries, open_begin, open_end = "", "", ""
    bounds: list[tuple[int, int, int]] = []
    for item in key:
        start, stop, step = 0, 0, 1
        if item is None:
            entries += "n"
        elif item is Ellipsis:
            entries += "e"
        elif isinstance(item, slice):
            entries += "s"
            start, stop = item.start or 0, item.stop or 0
            step = 1 if item.step is None else item.step
        else:
            entries += "i"
            start = item
        is_slice = isinstance(item, slice)
        open_begin += "1" if is_slice and item.start is None else "0"
        open_end += "1" if is_slice and item.stop is None else "0"
        bounds.append((start, stop, step))
    columns = np.array(bounds, np.int64).reshape(-1, 3).T
    attrs = {"entries": entries, "open_begin": open_begin, "open_end": open_end}
    return [array(column, dtype) for column in columns], attrs


_INDICES: dict[str, tuple[tuple[int, ...], tuple[Any, ...]]] = {
    "block": ((4, 5), AT[1:3, 2:]),
    "steps": ((7,), AT[1:6:2]),
    "backwards": ((7, 2), AT[::-1]),
    "backwards_from": ((7,), AT[5:1:-2]),
    "element": ((4, 5), AT[2]),
    "negative": ((4, 5), AT[-1, -3:-1]),
    "ellipsis": ((2, 3, 4), AT[..., 1]),
    "new_axis": ((3,), AT[None, :, None]),
    "mixed": ((2, 3, 4), AT[0, ..., None, ::2]),
    "beyond": ((3,), AT[1:100]),
    "nothing": ((3, 2), AT[2:1]),
    "to_scalar": ((3, 2), AT[2, 1]),
    "scalar": ((), AT[...]),
    "empty": ((0, 3), AT[:, 1:]),
}


def _slice_sample(label: str, shape: tuple[int, ...], key: tuple[Any, ...]) -> Sample:
    bounds, attrs = encoded(key, "int64" if label == "steps" else "int32")
    return Sample(
        "StridedSlice",
        [uniform(shape), *bounds],
        attrs,
        lambda x, *_, **__: x[key],
        label=label,
    )


def _scatter_sample(label: str, shape: tuple[int, ...], key: tuple[Any, ...]) -> Sample:
    bounds, attrs = encoded(key)

    def oracle(*arrays: Any, **_: Any) -> Any:
        dy = arrays[-1]
        whole = np.full(shape, b"", object) if dy.dtype == object else np.zeros(shape, dy.dtype)
        whole[key] = dy
        return whole

    part = np.zeros(shape)[key].shape
    return Sample(
        "StridedSliceGrad",
        [array(np.array(shape, np.int64), "int32"), *bounds, uniform(part)],
        attrs,
        oracle,
        dtypes=("float16", "float32", "float64", "int32", "complex64"),
        label=label,
    )


def _block_of(x: Any, begin: Any, size: Any) -> Any:
    stops = [d if s == -1 else b + s for d, b, s in zip(x.shape, begin, size, strict=True)]
    return x[(*(slice(int(b), int(e)) for b, e in zip(begin, stops, strict=True)), ...)]


_BLOCKS = [
    Sample(
        "Slice",
        [
            uniform(shape),
            array(np.array(begin, np.int64), dtype),
            array(np.array(size, np.int64), "int32"),
        ],
        {},
        _block_of,
        dtypes=("float64", "float32", "int8", "int64", "bool", "complex64", "string"),
        label=label,
    )
    for label, shape, begin, size, dtype in (
        ("matrix", (3, 4), [1, 0], [2, 3], "int32"),
        ("rest", (3, 4), [0, 2], [3, -1], "int64"),
        ("nothing", (3, 4), [3, 0], [0, 4], "int32"),
        ("scalar", (), [], [], "int32"),
        ("empty", (0, 2), [0, 1], [-1, 1], "int32"),
    )
]

_BLOCK, _BLOCK_ATTRS = encoded(AT[5, :])
_THREE, _THREE_ATTRS = encoded(AT[0, 0, 0])

SAMPLES: list[Row] = [
    *(_slice_sample(label, shape, key) for label, (shape, key) in _INDICES.items()),
    *(_scatter_sample(label, shape, key) for label, (shape, key) in _INDICES.items()),
    *_BLOCKS,
    Reject(
        "Slice",
        [integers((4, 5), 0, 9), array([1, 3], "int32"), array([2, 3], "int32")],
        {},
        ShapeError,
        "do not lie within axis 1",
        label="beyond",
    ),
    Reject(
        "Slice",
        [integers((4, 5), 0, 9), array([1], "int32"), array([2], "int32")],
        {},
        ShapeError,
        "one entry per dimension",
    ),
    Reject(
        "StridedSlice",
        [integers((4, 5), 0, 9), *_BLOCK],
        _BLOCK_ATTRS,
        ShapeError,
        "index 5 is out of range",
        label="element",
    ),
    Reject(
        "StridedSlice",
        [integers((4, 5), 0, 9), *_THREE],
        _THREE_ATTRS,
        ShapeError,
        "3 indices",
        label="count",
    ),
]
