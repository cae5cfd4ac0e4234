"""Lengths and sizes beyond 32 bits keep their value, or are refused: none wraps around."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import HeadraceError

pytestmark = pytest.mark.needs("backend-cpu")

FAR = 2**31


@pytest.fixture
def session():
    with hr.Session() as opened:
        yield opened


def fed(session: Any, build: Any, value: Any, dtype: Any) -> Any:
    place = hr.placeholder(dtype, np.shape(value))
    return session.run(build(place), {place: value})


@pytest.mark.parametrize("as_feed", [False, True])
@pytest.mark.parametrize(
    ("lengths", "dtype", "maxlen", "counts"),
    [
        ([FAR + 1, 2], hr.int64, 4, [4, 2]),
        ([2 * FAR + 1, 2 * FAR], hr.int64, 3, [3, 3]),
        ([-2 * FAR - 1, 1], hr.int64, 3, [0, 1]),
        ([2**63 - 1], hr.int64, np.int32(5), [5]),
        ([2**64 - 1, 2], hr.uint64, 5, [5, 2]),
        ([FAR + 7], hr.uint32, 5, [5]),
        ([200], hr.uint8, 300, [200]),
        ([100, -100], hr.int8, 200, [100, 0]),
        ([40000], hr.uint16, np.int64(70000), [40000]),
    ],
)
def test_masks_of_long_sequences(session, lengths, dtype, maxlen, counts, as_feed) -> None:
    def build(place):
        return hr.reduce_sum(hr.sequence_mask(place, maxlen, hr.int32), -1)

    value = np.array(lengths, dtype.numpy)
    found = fed(session, build, value, dtype) if as_feed else session.run(build(hr.constant(value)))
    assert found.tolist() == counts
    with hr.Graph().as_default():
        assert hr.sequence_mask(value, maxlen).shape == (len(lengths), int(maxlen))


def test_a_mask_longer_than_memory_is_refused(session) -> None:
    with pytest.raises(HeadraceError, match=r"memory|too long"):
        session.run(hr.sequence_mask([1], 2**60))


@pytest.mark.parametrize("as_feed", [False, True])
@pytest.mark.parametrize(
    ("first", "last", "step"),
    [
        (FAR, FAR + 3, 1),
        (-FAR - 3, -FAR, 1),
        (FAR - 2, FAR + 2, 1),
        (0, 4 * FAR, 2 * FAR),
        (FAR + 3, FAR, -1),
        (-(2**63), 2**63 - 1, 2**62),
    ],
)
def test_ranges_beyond_32_bits(session, first, last, step, as_feed) -> None:
    def build(place):
        return hr.range(place, last, step)

    start = np.int64(first)
    found = fed(session, build, start, hr.int64) if as_feed else session.run(build(start))
    assert found.tolist() == list(range(first, last, step))
    assert session.run(hr.range(first, last, step, dtype=hr.int64)).tolist() == found.tolist()


@pytest.mark.parametrize(
    ("first", "last", "step", "dtype"),
    [
        (FAR - 3, FAR - 1, 5, hr.int32),
        (FAR - 3, FAR - 1, 2**30, hr.int32),
        (-FAR, FAR - 1, 2**30, hr.int32),
        (2**63 - 3, 2**63 - 1, 5, hr.int64),
        (3 - FAR, -FAR, -5, hr.int32),
    ],
)
def test_ranges_end_before_they_wrap(session, first, last, step, dtype) -> None:
    def build(place):
        return hr.range(place, last, step, dtype=dtype)

    expected = list(range(first, last, step))
    assert fed(session, build, np.array(first, dtype.numpy), dtype).tolist() == expected


@pytest.mark.parametrize("value", [FAR, -FAR - 1, 2 * FAR, 2**63])
def test_numbers_that_a_stated_dtype_does_not_hold_are_refused(value) -> None:
    with pytest.raises(HeadraceError, match="does not fit int32"):
        hr.range(value, value + 3, dtype=hr.int32)


@pytest.mark.parametrize("length", [FAR, FAR + 1, 2 * FAR + 1, 2**40, 2**62])
def test_sequences_of_recurrent_networks_are_as_long_as_stated(session, length) -> None:
    cell = hr.nn.rnn_cell.BasicRNNCell(2, name=f"cell{length}")
    x = hr.constant(np.ones((1, 3, 2), np.float32))
    whole, _ = hr.nn.dynamic_rnn(cell, x, dtype=hr.float32)
    stated, _ = hr.nn.dynamic_rnn(cell, x, sequence_length=np.array([length]), dtype=hr.float32)
    session.run(hr.global_variables_initializer())
    a, b = session.run([whole, stated])
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("size", [2**63, 2**64, 10**30])
@pytest.mark.parametrize(
    "make",
    [
        lambda n: hr.placeholder(hr.float32, [n]),
        lambda n: hr.placeholder(hr.float32, [None, n, 0]),
        lambda n: hr.constant(1.0, shape=[n]),
        lambda n: hr.TensorShape([2, n]),
        lambda n: hr.zeros([n]),
        lambda n: hr.tile(hr.constant([1.0]), [n]),
        lambda n: hr.get_variable("v", [n], initializer=hr.zeros_initializer()),
    ],
    ids=["vector", "matrix", "constant", "shape", "zeros", "tile", "variable"],
)
def test_sizes_beyond_64_bits_are_refused_in_these_words(make, size) -> None:
    with hr.Graph().as_default(), pytest.raises(HeadraceError, match=r"2\*\*63 - 1|of 64 bits"):
        make(size)


# What is made of a vector as long as one can be: its shape, or why there is none.
OF_THE_LONGEST: dict[str, tuple[Any, list[int] | str]] = {
    "concat": (lambda x: hr.concat([x, x], 0), r"at most 2\*\*63 - 1, got 18446744073709551614"),
    "tile": (lambda x: hr.tile(x, [4]), r"at most 2\*\*63 - 1, got 36893488147419103228"),
    "pad": (lambda x: hr.pad(x, [[1, 1]]), r"at most 2\*\*63 - 1, got 9223372036854775809"),
    "diag": (hr.matrix_diag, "a range from 0 to 9223372036854775807 by 1 is too long"),
    "slice": (lambda x: hr.expand_dims(x, 0)[:, 1:], [1, 2**63 - 2]),
    "stride": (lambda x: x[::2], [2**62]),
}


@pytest.mark.parametrize("name", OF_THE_LONGEST)
def test_what_is_made_of_the_longest_vector_is_known_or_refused(name: str) -> None:
    use, expected = OF_THE_LONGEST[name]
    with hr.Graph().as_default():
        x = hr.placeholder(hr.float32, [2**63 - 1])
        if isinstance(expected, list):
            assert use(x).shape == expected
            return
        with pytest.raises(HeadraceError, match=expected):
            use(x)
