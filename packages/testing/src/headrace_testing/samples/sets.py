"""Samples of operations on sets."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import AttributeValueError, InvalidArgumentError, ShapeError
from headrace_testing.inputs import Input, array
from headrace_testing.sample import Reject, Row, Sample

_A = [[3, 1, 3], [5, 5, 5], [2, 7, 0]]
_B = [[1, 9], [5, 5], [4, 4]]
_RESULTS = {
    "a-b": [[3], [], [0, 2, 7]],
    "b-a": [[9], [], [4]],
    "intersection": [[1], [5], []],
    "union": [[1, 3, 9], [5], [0, 2, 4, 7]],
}


def _sparse(rows: list[list[int]], columns: int = 3, dtype: str | None = None) -> list[Input]:
    """Return indices, values and shape of rows."""
    indices = [(i, j) for i, row in enumerate(rows) for j in range(len(row))]
    return [
        array(np.array(indices, np.int64).reshape(-1, 2), "int64"),
        array(np.array([v for row in rows for v in row], np.int64), dtype),
        array([len(rows), columns], "int64"),
    ]


def _oracle(result: list[list[int]]) -> Any:
    indices = [(i, j) for i, row in enumerate(result) for j in range(len(row))]
    values = [value for row in result for value in row]
    widest = max(map(len, result))
    return lambda *_, **__: (
        np.array(indices, np.int64).reshape(-1, 2),
        np.array(values, np.int64),
        np.array([len(result), widest], np.int64),
    )


def _forms(dtype: str | None) -> dict[str, list[Input]]:
    a, b = array(_A, dtype), array(_B, dtype)
    return {
        "DenseToDenseSetOperation": [a, b],
        "DenseToSparseSetOperation": [a, *_sparse(_B, dtype=dtype)],
        "SparseToSparseSetOperation": [*_sparse(_A, dtype=dtype), *_sparse(_B, dtype=dtype)],
    }


_NUMBERS = ("int8", "int16", "int32", "int64", "uint8", "uint16")

SAMPLES: list[Row] = [
    *(
        Sample(
            op,
            inputs,
            {"set_operation": operation},
            _oracle(result),
            dtypes=_NUMBERS,
            exact_shape=False,
            label=operation,
        )
        for op, inputs in _forms(None).items()
        for operation, result in _RESULTS.items()
    ),
    *(
        Reject(
            op,
            inputs,
            {"set_operation": "xor"},
            AttributeValueError,
            "set_operation must be one of",
            label="operation",
        )
        for op, inputs in _forms("int32").items()
    ),
    Reject(
        "DenseToDenseSetOperation",
        [array(_A, "int32"), array(_B[:2], "int32")],
        {"set_operation": "union"},
        ShapeError,
        "same dimensions before the last one",
        label="groups",
    ),
    Sample(
        "SetSize",
        _sparse(_A),
        oracle=lambda *_, **__: np.array([2, 1, 3], np.int32),
        dtypes=_NUMBERS,
    ),
    Reject(
        "SetSize",
        [array([[1, 0], [0, 0]], "int64"), array([1, 2], "int32"), array([2, 1], "int64")],
        {},
        InvalidArgumentError,
        "out of order",
        when="run",
        label="order",
    ),
]
