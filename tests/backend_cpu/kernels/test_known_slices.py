"""Slices with constant ends of known shapes: those of Python, and what is wrong is told as ever."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr

pytestmark = pytest.mark.needs("backend-cpu")

COMPILED = {"compile_after": 0, "compile_wait": True}
INDICES = {
    "column": np.s_[:, 3],
    "last": np.s_[-1],
    "reversed": np.s_[::-2, 1:],
    "new_axis": np.s_[1:2, None, ..., 0],
    "all": np.s_[...],
    "element": np.s_[2, 3, 1],
    "nothing": np.s_[4:2],
}


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
@pytest.mark.parametrize("config", [{"executor": "plain"}, COMPILED], ids=["plain", "compiled"])
@pytest.mark.parametrize("known", [True, False])
def test_slices_are_those_of_python(index, config, known):
    given = np.arange(60, dtype=np.float32).reshape(3, 5, 4)
    x = hr.placeholder("float32", [3, 5, 4] if known else [None] * 3)
    # What reads a slice twice keeps it from being part of a kernel.
    part = x[index]
    doubled = hr.concat([hr.reshape(part, [-1])] * 2, 0)
    with hr.Session(config=hr.Config(**config)) as session:
        for _ in range(2):
            found, twice = session.run([part, doubled], {x: given})
    np.testing.assert_array_equal(found, given[index])
    assert twice.shape == (2 * given[index].size,)


@pytest.mark.parametrize("config", [{"executor": "plain"}, COMPILED], ids=["plain", "compiled"])
def test_strings_are_sliced(config):
    x = hr.placeholder("string", [2, 3])
    with hr.Session(config=hr.Config(**config)) as session:
        for _ in range(2):
            found = session.run(x[:, 1], {x: [[b"a", b"b", b"c"], [b"d", b"e", b"f"]]})
    assert found.tolist() == [b"b", b"e"]


@pytest.mark.parametrize("config", [{"executor": "plain"}, COMPILED], ids=["plain", "compiled"])
def test_an_index_that_only_a_step_finds_out_of_range_is_told(config):
    x, at = hr.placeholder("float32", [3]), hr.placeholder("int32", [])
    part = x[at] * 2.0
    with hr.Session(config=hr.Config(**config)) as session:
        for _ in range(2):
            assert session.run(part, {x: [1, 2, 3], at: 2}) == 6
        with pytest.raises(hr.errors.HeadraceError, match="index 3 is out of range"):
            session.run(part, {x: [1, 2, 3], at: 3})
