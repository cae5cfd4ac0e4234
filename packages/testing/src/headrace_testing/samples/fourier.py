"""Samples of Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import AttributeValueError, ShapeError
from headrace_testing.inputs import array, uniform
from headrace_testing.sample import Reject, Row, Sample

_COUNTS = {1: "", 2: "2D", 3: "3D"}


def _axes(count: int) -> tuple[int, ...]:
    return tuple(range(-count, 0))


def _complex_rows(count: int) -> list[Row]:
    suffix, axes = _COUNTS[count], _axes(count)
    shapes = {"batch": (2, 3, 4, 5), "one": (1,) * count, "empty": (2, 0, 3, 4)}
    rows: list[Row] = []
    for label, shape in shapes.items():
        empty = not np.prod(shape)
        for op, function in ((f"FFT{suffix}", np.fft.fftn), (f"IFFT{suffix}", np.fft.ifftn)):
            rows.append(
                Sample(
                    op,
                    [uniform(shape)],
                    oracle=(lambda x: x) if empty else _along(function, axes),
                    label=label,
                )
            )
    rows += [
        Reject(
            op,
            [array(np.zeros((2,) * (count - 1)), "complex64")],
            error=ShapeError,
            match=f"must have at least {count} dimensions",
        )
        for op in (f"FFT{suffix}", f"IFFT{suffix}")
    ]
    return rows


def _along(function: Any, axes: tuple[int, ...]) -> Any:
    return lambda x: function(x, axes=axes)


def _real_rows(count: int) -> list[Row]:
    forward, backward, axes = f"RFFT{_COUNTS[count]}", f"IRFFT{_COUNTS[count]}", _axes(count)
    lengths = {
        "even": [3, 4, 6][-count:],
        "odd": [3, 4, 5][-count:],
        "cut": [2, 3, 4][-count:],
        "one": [1] * count,
        "none": [3, 4, 0][-count:],
    }
    rows: list[Row] = []
    for label, length in lengths.items():
        known = array(length, "int32")
        rows.append(
            Sample(
                forward,
                [uniform((2, 3, 4, 6)), known],
                oracle=_forward(axes),
                grad=False,
                label=label,
            )
        )
        rows.append(
            Sample(
                backward,
                [uniform((2, 3, 4, 4)), known],
                oracle=_backward(axes),
                grad=["input"],
                label=label,
            )
        )
    for op in (forward, backward):
        dtype = "float32" if op is forward else "complex64"
        small = array(np.zeros((1, 1, 1)), dtype)
        rows += [
            Reject(
                op,
                [small, array([-1] * count, "int32")],
                error=AttributeValueError,
                match="fft_length must not be negative",
                label="negative",
            ),
            Reject(
                op,
                [small, array([4] * (count + 1), "int32")],
                error=ShapeError,
                match="fft_length must have shape",
                label="lengths",
            ),
            Reject(
                op,
                [small, array([4] * count, "int32")],
                error=ShapeError,
                match="last dimensions of input must be at least",
                label="small",
            ),
        ]
    return rows


def _forward(axes: tuple[int, ...]) -> Any:
    def oracle(x: Any, length: Any) -> Any:
        sizes = [int(size) for size in length]
        if 0 in sizes:
            return np.zeros((*x.shape[: -len(axes)], *sizes), complex)
        return np.fft.rfftn(x, s=sizes, axes=axes)

    return oracle


def _backward(axes: tuple[int, ...]) -> Any:
    def oracle(x: Any, length: Any) -> Any:
        sizes = [int(size) for size in length]
        if 0 in sizes:
            return np.zeros((*x.shape[: -len(axes)], *sizes))
        return np.fft.irfftn(x, s=sizes, axes=axes)

    return oracle


SAMPLES: list[Row] = [
    row for count in _COUNTS for row in (*_complex_rows(count), *_real_rows(count))
]
