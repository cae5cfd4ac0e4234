"""Samples of reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.errors import DTypeError, ShapeError
from headrace_testing.inputs import array, booleans, distinct, integers, uniform, whole
from headrace_testing.sample import Reject, Row, Sample
from headrace_testing.samples.elementwise import FLOATS

_AXES: dict[str, dict[str, Any]] = {
    "all": {},
    "all_kept": {"keepdims": True},
    "first": {"axis": 0},
    "last_kept": {"axis": -1, "keepdims": True},
    "two": {"axis": (0, 2)},
    "no_axis": {"axis": ()},
}
Oracle = Callable[..., Any]


def _axis(axis: Any) -> Any:
    return tuple(axis) if isinstance(axis, list | tuple) else axis


def _sum(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return np.sum(x, axis=_axis(axis), keepdims=keepdims)


def _mean(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
    total = np.sum(x, axis=_axis(axis), keepdims=keepdims)
    count = x.size // max(1, np.size(total))
    if np.issubdtype(x.dtype, np.integer):
        # Towards zero: numerator and denominator are small enough for float64 to be exact.
        return np.trunc(total.astype(np.float64) / count).astype(np.int64)
    return total / count


def _prod(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return np.prod(x, axis=_axis(axis), keepdims=keepdims)


def _max(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return np.max(x, axis=_axis(axis), keepdims=keepdims)


def _min(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return np.min(x, axis=_axis(axis), keepdims=keepdims)


def _every_axis(op: str, oracle: Oracle, make: Any, **options: Any) -> list[Sample]:
    return [
        Sample(op, [make((2, 3, 4))], attrs, oracle, label=label, **options)
        for label, attrs in _AXES.items()
    ] + [Sample(op, [make(())], {}, oracle, label="scalar", **options)]


def _empty(op: str, value: Any, **options: Any) -> list[Sample]:
    """Return samples that fold an axis without elements to ``value``, and one that keeps it."""
    full = [uniform((3, 0, 2))]
    return [
        Sample(
            op,
            full,
            {"axis": 1},
            lambda x, axis: np.full((3, 2), value),
            grad=False,
            label="empty",
            **options,
        ),
        Sample(
            op,
            full,
            {"axis": 0},
            lambda x, axis: np.zeros((0, 2)),
            grad=False,
            label="nothing_left",
            **options,
        ),
    ]


def _extremum_of_none(op: str, attribute: str, infinite: float) -> list[Sample]:
    rows = []
    for name in ("float32", "float64", "int8", "int32", "uint8", "uint64"):
        value = getattr(np.iinfo(name), attribute) if "int" in name else infinite
        rows.append(
            Sample(
                op,
                [uniform((2, 0))],
                {"axis": 1},
                lambda x, axis, value=value: np.full((2,), value, x.dtype),
                dtypes=(name,),
                grad=False,
                label=f"empty_{name}",
            )
        )
    return rows


SUMS = [
    *_every_axis("ReduceSum", _sum, lambda shape: uniform(shape, -2, 2)),
    *_empty("ReduceSum", 0),
    Sample("ReduceSum", [array([127, 127, 2], "int8")], {}, _sum, label="wrapping"),
    *_every_axis("ReduceMean", _mean, lambda shape: uniform(shape, -5, 5)),
    *_empty("ReduceMean", np.nan, dtypes=FLOATS),
    Sample("ReduceMean", [array([-1, -2, 0, 0], "int32")], {}, _mean, label="towards_zero"),
    *_every_axis("ReduceProd", _prod, lambda shape: uniform(shape, 0.7, 1.4)),
    *_empty("ReduceProd", 1),
    Sample(
        "ReduceProd",
        [array([[1.5, 0.0, -2.0], [0.5, 3.0, 0.0]])],
        {"axis": 0},
        _prod,
        dtypes=FLOATS,
        label="zeros",
    ),
]

EXTREMA = [
    *_every_axis("ReduceMax", _max, distinct),
    *_every_axis("ReduceMin", _min, distinct),
    *_extremum_of_none("ReduceMax", "min", -np.inf),
    *_extremum_of_none("ReduceMin", "max", np.inf),
    *(
        Sample(
            op,
            [array([[1.0, np.nan], [np.inf, -np.inf], [-0.0, 0.0]])],
            {"axis": 1},
            oracle,
            dtypes=FLOATS,
            grad=False,
            label="special",
        )
        for op, oracle in (("ReduceMax", _max), ("ReduceMin", _min))
    ),
]

_TRUTH: dict[str, Oracle] = {
    "ReduceAll": lambda x, axis=None, keepdims=False: np.all(
        x, axis=_axis(axis), keepdims=keepdims
    ),
    "ReduceAny": lambda x, axis=None, keepdims=False: np.any(
        x, axis=_axis(axis), keepdims=keepdims
    ),
}
LOGIC = [
    row
    for op, oracle in _TRUTH.items()
    for row in (
        *_every_axis(op, oracle, booleans),
        Sample(op, [booleans((3, 0))], {"axis": 1}, oracle, label="empty"),
    )
]

_INDEX: dict[str, Any] = {"ArgMax": np.argmax, "ArgMin": np.argmin}
# What NaN counts as, so that it is passed over.
_LAST: dict[Any, float] = {np.argmax: -np.inf, np.argmin: np.inf}
INDICES: list[Row] = [
    row
    for op, pick in _INDEX.items()
    for row in (
        Sample(op, [distinct((3, 4))], {}, lambda x, pick=pick: pick(x, 0), label="default"),
        Sample(
            op,
            [distinct((2, 3, 4))],
            {"axis": -2, "output_type": "int32"},
            lambda x, axis, output_type, pick=pick: pick(x, axis),
            label="axis",
        ),
        Sample(
            op,
            [array([[np.nan, 1, 2], [1, np.nan, 0], [np.nan] * 3, [np.inf, np.nan, -np.inf]])],
            {"axis": 1},
            lambda x, axis, pick=pick: pick(np.nan_to_num(x, nan=_LAST[pick]), axis),
            dtypes=FLOATS,
            label="special",
        ),
        Sample(
            op,
            [whole((5, 6), 0, 1)],
            {"axis": 1},
            lambda x, axis, pick=pick: pick(x, axis),
            label="ties",
        ),
        Sample(
            op,
            [uniform((0, 3))],
            {"axis": 1},
            lambda x, axis: np.zeros((0,), np.int64),
            label="empty",
        ),
        Reject(op, [array(1.0, "float32")], {}, ShapeError, "scalar", label="scalar"),
        Reject(op, [integers((2, 0), 0, 1)], {"axis": 1}, ShapeError, "is empty", label="empty"),
        Reject(
            op,
            [integers((2, 2), 0, 9)],
            {"output_type": "float32"},
            DTypeError,
            "output_type must be an integer",
            label="dtype",
        ),
    )
]


def _sum_to_shape(x: Any, shape: Any) -> Any:
    lead = x.ndim - len(shape)
    summed = np.sum(x, axis=tuple(range(lead)))
    ones = tuple(i for i, size in enumerate(shape) if size == 1 and summed.shape[i] != 1)
    return np.sum(summed, axis=ones, keepdims=True)


def _order(axes: Any, rank: Any) -> tuple[Any, Any, Any]:
    kept = np.ones(int(rank), np.int32)
    kept[axes] = 0
    order = np.concatenate([np.flatnonzero(kept), axes % max(int(rank), 1)])
    inverse = np.empty(int(rank), np.int64)
    inverse[order] = np.arange(int(rank))
    return order, inverse, kept


SHAPED: list[Row] = [
    *(
        Sample(
            "SumToShape",
            [uniform(source, -2, 2), array(target, "int32")],
            {},
            _sum_to_shape,
            label=label,
        )
        for label, source, target in (
            ("lead", (2, 3, 4), [4]),
            ("kept", (2, 3, 4), [1, 3, 1]),
            ("both", (2, 3, 4), [3, 1]),
            ("same", (2, 3), [2, 3]),
            ("empty", (0, 3), [1, 3]),
        )
    ),
    Sample(
        "SumToShape",
        [uniform((2, 3)), array(np.zeros((0,)), "int64")],
        {},
        lambda x, shape: np.sum(x),
        label="scalar",
    ),
    *(
        Sample(
            "ReductionOrder",
            [array(axes, dtype), array(rank, "int32")],
            {},
            _order,
            label=f"of_{rank}",
        )
        for axes, rank, dtype in (([-1, 0], 4, "int32"), ([1], 2, "int64"), ([], 0, "int32"))
    ),
    Reject(
        "ReductionOrder",
        [array([0], "int32"), array(2000000000, "int32")],
        {},
        ShapeError,
        "rank must be in",
        label="rank",
    ),
    Reject("ReduceSum", [integers((2, 3), 0, 9)], {"axis": 2}, ShapeError, "axis", label="axis"),
    Reject("ReduceSum", [integers((2, 3), 0, 9)], {"axis": (0, -2)}, ShapeError, "twice"),
    Reject("ReduceAll", [integers((2,), 0, 9)], {}, DTypeError, "bool, got int32"),
]

SAMPLES: list[Row] = [*SUMS, *EXTREMA, *LOGIC, *INDICES, *SHAPED]
