"""Rows that native loops pick and add up: the same bits as NumPy's, on any number of threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import headrace as hr
from headrace_cpu import rows
from headrace_cpu.native.threads import Share

# Rows of the table, updates, and the width: wide, narrow, a vector, hot rows, one row.
SIZES = {
    "wide": (500, 700, 64),
    "odd": (97, 2000, 13),
    "pairs": (4000, 20_000, 2),
    "vector": (100, 40_000, 1),
    "one row": (1, 300, 70),
}


@pytest.fixture(autouse=True)
def waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_COMPILE_WAIT", "1")


@pytest.fixture(params=[1, 2, 3], ids=lambda n: f"{n} threads")
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    share = Share(request.param)
    share.enter()
    yield request.param
    share.leave()
    one = Share(1)
    one.enter()
    one.leave()


def _case(name: str, dtype: str, index: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    height, count, width = SIZES[name]
    rng = np.random.default_rng(len(name))
    table = rng.standard_normal((height, width)).astype(dtype)
    # Some rows are named very often, as words of a text are.
    places = (height * rng.random(count) ** 3).astype(index)
    return table, places, rng.standard_normal((count, width)).astype(dtype)


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", SIZES)
def test_rows_are_added_in_order(threads, name, dtype, index) -> None:
    for subtract in (False, True):
        table, places, values = _case(name, dtype, index)
        expected = table.copy()
        for row, value in zip(places, values, strict=True):
            expected[row] = expected[row] - value if subtract else expected[row] + value
        assert rows.add(table, places, values, subtract=subtract)
        np.testing.assert_array_equal(table, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint64", "complex64"])
@pytest.mark.parametrize("name", ["wide", "odd"])
def test_rows_are_picked(threads, name, dtype) -> None:
    table, places, _ = _case(name, "float64", "int64")
    # Any bits, those of signalling NaNs among them.
    table = np.frombuffer((table * 1e300).tobytes(), dtype).reshape(len(table), -1)
    picked = rows.pick(table, places)
    assert picked is not None
    assert picked.dtype == table.dtype
    assert picked.tobytes() == table[places].tobytes()


def test_what_numpy_does_as_well_is_left_to_it() -> None:
    table, places, values = _case("wide", "float32", "int32")
    before = table.copy()
    assert not rows.add(table, places[:10], values[:10])
    assert not rows.add(table, places.astype(np.uint8), values)
    assert not rows.add(table, places, values.astype(np.float64))
    assert not rows.add(table[:, ::2], places, np.tile(values, 2)[:, :32])
    assert rows.pick(table, places[:10]) is None
    assert rows.pick(np.zeros((50, 3), "S4"), places) is None
    assert rows.pick(np.full((50, 64), None, object), places) is None
    np.testing.assert_array_equal(table, before)


def test_without_a_compiler_numpy_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ImportError("No module named 'llvmlite'")

    said: list[str] = []
    monkeypatch.setattr("headrace_cpu.native.later.build", fail)
    monkeypatch.setattr("headrace_cpu.native.compiler.notice", said.append)
    rows._kernel.cache_clear()
    try:
        table, places, values = _case("wide", "float32", "int32")
        assert not rows.add(table, places, values)
        assert "no kernel can be generated for add_rows, so plain kernels do its work" in said[0]
    finally:
        rows._kernel.cache_clear()


def test_numpy_does_it_until_the_kernel_is_made_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_COMPILE_WAIT", "0")
    submitted: list[Callable[[], None]] = []

    class Later:
        def submit(self, pieces: list[Callable[[], None]], done: object) -> None:
            submitted.extend(pieces)

    monkeypatch.setattr("headrace_cpu.native.later.Background", Later)
    rows._kernel.cache_clear()
    try:
        table, places, values = _case("wide", "float32", "int32")
        before = table.copy()
        assert not rows.add(table, places, values)
        assert rows.pick(table, places) is None
        assert not rows.add(table, places, values)
        np.testing.assert_array_equal(table, before)
        assert len(submitted) == 2
        for piece in submitted:
            piece()
        assert rows.add(table, places, values)
        assert rows.pick(table, places) is not None
    finally:
        rows._kernel.cache_clear()


@pytest.mark.parametrize("update", ["scatter_add", "scatter_sub", "scatter_nd_sub"])
def test_a_table_is_changed_where_it_is(update) -> None:
    """Who holds an older value keeps it."""
    table, places, values = _case("wide", "float32", "int32")
    with hr.Graph().as_default(), hr.Session() as session:
        variable = hr.Variable(table)
        given = places[:, None] if "nd" in update else places
        change = getattr(hr, update)(variable, given, values)
        session.run(hr.global_variables_initializer())
        before = session.run(variable)
        after = session.run(change)
        again = session.run(change)
    np.testing.assert_array_equal(before, table)
    for found, base in ((after, table), (again, after)):
        expected = base.copy()
        np.add.at(expected, places, values if update == "scatter_add" else -values)
        np.testing.assert_array_equal(found, expected)
