"""Samples of array ops."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import AttributeValueError, DTypeError, ExecutionError, ShapeError
from headrace.testing.inputs import array, integers, strings, uniform
from headrace.testing.sample import Reject, Row, Sample


def _number(value: Any) -> Any:
    return np.asarray(value, np.int64)


FORWARDED = [
    *(
        Sample(op, [uniform(shape)], {}, lambda input: input, label=label)
        for op in ("Identity", "StopGradient")
        for label, shape in (("matrix", (3, 4)), ("scalar", ()), ("empty", (0, 2)))
    ),
    Sample(
        "IdentityN",
        [[uniform((2, 3)), integers((2,), 0, 9), strings(())]],
        {},
        lambda input: tuple(input),
    ),
    Sample(
        "IdentityN",
        [[uniform(()), uniform((0, 1))]],
        {},
        lambda input: tuple(input),
        label="scalar",
    ),
]

SHAPES = [
    row
    for label, shape in (("matrix", (3, 4)), ("scalar", ()), ("empty", (2, 0)))
    for row in (
        Sample("Shape", [uniform(shape)], {}, lambda x: _number(x.shape), label=label),
        Sample("Size", [uniform(shape)], {}, lambda x: _number(x.size), label=label),
        Sample("Rank", [uniform(shape)], {}, lambda x: _number(x.ndim), label=label),
    )
] + [
    Sample(
        op,
        [uniform((3, 4))],
        {"out_type": "int64"},
        lambda x, out_type, of=of: _number(of(x)),
        dtypes=("float32",),
        label="int64",
    )
    for op, of in (("Shape", np.shape), ("Size", np.size))
]

ARRANGED = [
    *(
        Sample(
            "Reshape",
            [uniform(source), array(np.array(target, np.int64), dtype)],
            {},
            lambda x, shape: np.reshape(x, [int(d) for d in shape]),
            label=label,
        )
        for label, source, target, dtype in (
            ("matrix", (3, 4), [2, 6], "int32"),
            ("free", (3, 4), [2, -1, 2], "int64"),
            ("scalar", (1, 1), [], "int32"),
            ("from_scalar", (), [1, -1], "int32"),
            ("empty", (0, 4), [2, 0, 3], "int32"),
        )
    ),
    *(
        Sample(
            "Transpose",
            [uniform(shape)],
            {"perm": perm},
            lambda a, perm: np.transpose(a, perm),
            label=label,
        )
        for label, shape, perm in (
            ("default", (2, 3, 4), None),
            ("cycle", (2, 3, 4), (1, 2, 0)),
            ("negative", (2, 3, 4), (0, -1, 1)),
            ("scalar", (), ()),
            ("empty", (0, 3), (1, 0)),
        )
    ),
    *(
        Sample(
            "ExpandDims",
            [uniform(shape)],
            {"axis": axis},
            lambda x, axis: np.expand_dims(x, axis),
            label=label,
        )
        for label, shape, axis in (
            ("front", (2, 3), 0),
            ("last", (2, 3), -1),
            ("scalar", (), 0),
            ("empty", (0,), 1),
        )
    ),
    *(
        Sample(
            "Squeeze",
            [uniform(shape)],
            {"axis": axis},
            lambda x, axis: np.squeeze(x, axis),
            label=label,
        )
        for label, shape, axis in (
            ("all", (1, 3, 1), None),
            ("one", (1, 3, 1), -1),
            ("two", (1, 3, 1), (0, 2)),
            ("scalar", (), None),
            ("empty", (1, 0), 0),
        )
    ),
    *(
        Sample(
            "BroadcastTo",
            [uniform(source), array(np.array(target, np.int64), dtype)],
            {},
            lambda x, shape: np.broadcast_to(x, [int(d) for d in shape]),
            label=label,
        )
        for label, source, target, dtype in (
            ("rows", (3,), [2, 3], "int32"),
            ("column", (3, 1), [2, 3, 4], "int64"),
            ("scalar", (), [2, 2], "int32"),
            ("same", (2, 3), [2, 3], "int32"),
            ("empty", (1, 3), [0, 3], "int32"),
        )
    ),
    *(
        Sample(
            "Tile",
            [uniform(shape)],
            {"multiples": multiples},
            lambda x, multiples: np.tile(x, multiples),
            label=label,
        )
        for label, shape, multiples in (
            ("matrix", (2, 3), (2, 1)),
            ("both", (1, 3), (3, 2)),
            ("none", (2, 3), (0, 1)),
            ("scalar", (), ()),
        )
    ),
    *(
        Sample(
            "Pad",
            [uniform(shape)],
            {"paddings": paddings, "constant_values": filler},
            lambda x, paddings, constant_values: np.pad(
                x, paddings or 0, constant_values=x.dtype.type(constant_values)
            ),
            label=label,
        )
        for label, shape, paddings, filler in (
            ("matrix", (2, 3), ((1, 0), (2, 1)), 0),
            ("filled", (3,), ((2, 2),), 7),
            ("nothing", (2, 1), ((0, 0), (0, 0)), 0),
            ("empty", (0, 2), ((1, 1), (0, 0)), 1),
            ("scalar", (), (), 0),
        )
    ),
]

JOINED = [
    *(
        Sample(
            "Concat",
            [[uniform(shape) for shape in shapes]],
            {"axis": axis},
            lambda values, axis: np.concatenate(values, axis),
            label=label,
        )
        for label, shapes, axis in (
            ("rows", [(2, 3), (1, 3), (4, 3)], 0),
            ("columns", [(2, 3), (2, 1)], -1),
            ("one", [(2, 3)], 1),
            ("empty", [(2, 0), (2, 3)], 1),
        )
    ),
    *(
        Sample(
            "Stack",
            [[uniform(shape)] * count],
            {"axis": axis},
            lambda values, axis: np.stack(values, axis),
            label=label,
        )
        for label, shape, count, axis in (
            ("first", (2, 3), 3, 0),
            ("last", (2, 3), 2, -1),
            ("scalars", (), 3, 0),
            ("empty", (0, 2), 2, 1),
        )
    ),
    *(
        Sample(
            "Unstack",
            [uniform(shape)],
            {"num": shape[axis], "axis": axis},
            lambda value, num, axis: tuple(np.moveaxis(value, axis, 0)),
            label=label,
        )
        for label, shape, axis in (
            ("rows", (3, 2), 0),
            ("columns", (3, 2), -1),
            ("vector", (2,), 0),
            ("empty", (2, 0), 0),
        )
    ),
    *(
        Sample(
            "Split",
            [uniform(shape)],
            {"sizes": sizes, "axis": axis},
            lambda value, sizes, axis: tuple(np.split(value, np.cumsum(sizes)[:-1], axis)),
            label=label,
        )
        for label, shape, sizes, axis in (
            ("rows", (5, 2), (2, 3), 0),
            ("columns", (2, 6), (1, 4, 1), -1),
            ("whole", (3,), (3,), 0),
            ("empty", (3, 2), (0, 3), 0),
        )
    ),
]

GATHERED = [
    *(
        Sample(
            "Gather",
            [uniform(shape), array(np.array(indices, np.int64), dtype)],
            {"axis": axis},
            lambda params, indices, axis: np.take(params, indices, axis),
            label=label,
        )
        for label, shape, indices, dtype, axis in (
            ("rows", (4, 3), [3, 0, 3], "int32", 0),
            ("columns", (4, 3), [[2, 0], [1, 1]], "int64", -1),
            ("middle", (2, 4, 3), [1, 3, 0], "int32", 1),
            ("one", (4, 3), 2, "int32", 0),
            ("vector", (5,), [0, 0, 4], "int32", 0),
            ("nothing", (4, 3), [], "int32", 0),
        )
    ),
]

REJECTS: list[Row] = [
    Reject(
        "Reshape",
        [integers((3, 4), 0, 9), array([5, -1], "int32")],
        {},
        ShapeError,
        "12 elements",
        label="count",
    ),
    Reject(
        "Reshape",
        [integers((3, 4), 0, 9), array([-1, -1], "int32")],
        {},
        ShapeError,
        "one -1",
        label="free",
    ),
    Reject("Transpose", [integers((2, 3), 0, 9)], {"perm": (0, 0)}, ShapeError, "no permutation"),
    Reject("ExpandDims", [integers((2, 3), 0, 9)], {"axis": 4}, ShapeError, "axis"),
    Reject("Squeeze", [integers((2, 3), 0, 9)], {"axis": 0}, ShapeError, "has size 2, not 1"),
    Reject(
        "BroadcastTo",
        [integers((2, 3), 0, 9), array([4, 3], "int32")],
        {},
        ShapeError,
        "not broadcast",
    ),
    Reject(
        "Tile",
        [integers((2, 3), 0, 9)],
        {"multiples": (2,)},
        ShapeError,
        "1 multiples",
        label="few",
    ),
    Reject("Tile", [integers((2,), 0, 9)], {"multiples": (-1,)}, AttributeValueError, ">= 0"),
    Reject(
        "Pad", [integers((2,), 0, 9)], {"paddings": ((1, -1),)}, AttributeValueError, "paddings"
    ),
    Reject(
        "Pad",
        [integers((2,), 0, 9)],
        {"paddings": ((1, 1),), "mode": "REFLECT"},
        AttributeValueError,
        "mode must be",
        label="mode",
    ),
    Reject(
        "Concat",
        [[integers((2, 3), 0, 9), integers((3, 2), 0, 9)]],
        {"axis": 0},
        ShapeError,
        "differ in axis 1",
        label="shapes",
    ),
    Reject(
        "Concat",
        [[integers((2,), 0, 9), strings((2,))]],
        {"axis": 0},
        DTypeError,
        "string",
        label="dtypes",
    ),
    Reject("Concat", [[integers((), 0, 9)] * 2], {"axis": 0}, ShapeError, "use stack"),
    Reject("Stack", [[integers((2,), 0, 9), integers((3,), 0, 9)]], {}, ShapeError, "incompatible"),
    Reject("Unstack", [integers((2, 3), 0, 9)], {"num": 3}, ShapeError, "has size 2, not 3"),
    Reject("Split", [integers((5,), 0, 9)], {"sizes": (2, 2)}, ShapeError, "add up to 4"),
    Reject(
        "Gather",
        [integers((4, 3), 0, 9), array([0, 4], "int32")],
        {},
        ExecutionError,
        "4",
        when="run",
        label="beyond",
    ),
    Reject(
        "Gather",
        [integers((4, 3), 0, 9), array([0, -1], "int32")],
        {},
        ExecutionError,
        "-1",
        when="run",
        label="negative",
    ),
    Reject(
        "Gather",
        [integers((4, 3), 0, 9), array([0.0, 1.0], "float32")],
        {},
        DTypeError,
        "int32 or int64, got float32",
        label="dtype",
    ),
]

SAMPLES: list[Row] = [*FORWARDED, *SHAPES, *ARRANGED, *JOINED, *GATHERED, *REJECTS]
