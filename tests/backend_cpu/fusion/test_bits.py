"""Bits of integers in generated kernels: one kernel, and the values of NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr

COUNT = 4096


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
def test_bits_are_one_kernel_and_equal_the_plain_ones(dtype: str) -> None:
    rng, info = np.random.default_rng(0), np.iinfo(dtype)
    x, y = (rng.integers(info.min, info.max, COUNT, dtype, endpoint=True) for _ in range(2))
    # Also numbers of bits below 0, of all bits, and of more.
    places = np.resize(np.array([-3, 0, 1, 5, 7, 8, 9, 31, 32, 63, 64, 127]).astype(dtype), COUNT)
    with hr.Graph().as_default():
        a, b, n = (hr.placeholder(dtype, [COUNT]) for _ in range(3))
        shifted = hr.bitwise.left_shift(a, n) | hr.bitwise.right_shift(b, n)
        mixed = (shifted ^ (a & b)) ^ ~a
        feed = {a: x, b: y, n: places}
        with hr.Session(config=hr.Config(executor="plain")) as session:
            wanted = session.run(mixed, feed)
        with hr.Session(config=hr.Config(compile_after=0)) as session:
            np.testing.assert_array_equal(session.run(mixed, feed), wanted)
            explained = session.explain(mixed, feed)
    assert len(explained.kernels) == 1
    assert not [work for part in explained.walk() for work in part.plain]


def test_other_widths_stay_outside_and_are_right() -> None:
    x = np.arange(-50, 50, dtype=np.int16)
    with hr.Graph().as_default(), hr.Session(config=hr.Config(compile_after=0)) as session:
        a = hr.placeholder(hr.int16, [100])
        found = session.run(~a ^ (a & 7), {a: x})
    np.testing.assert_array_equal(found, ~x ^ (x & 7))
