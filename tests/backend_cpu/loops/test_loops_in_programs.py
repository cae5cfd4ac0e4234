"""Loops as operations of the program around them: one program, however they run."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import headrace as hr
from headrace.errors import CancelledError
from headrace.extend.kernels import ListValue, MissingItems
from headrace_cpu.loops.loop_call import KeepingRuns, LoopCall
from tests.backend_cpu.loops.one_by_one import round_by_round

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

X = np.random.default_rng(5).standard_normal((6, 4)).astype(np.float32)
EXACT = {"compile_after": 0, "compile_wait": True, "threads": 1}


def counted(x, n):
    return hr.while_loop(lambda t, v: t < n, lambda t, v: (t + 1, hr.tanh(v) + x), [0, x])


def counter_left(x, n):
    return hr.while_loop(lambda t, v: t < n, lambda t, v: (t + 2, v * 0.5), [0, x])[1]


def asked(x, n):
    limit = 8.0 - hr.cast(n, "float32")
    return hr.while_loop(lambda v: hr.reduce_sum(hr.abs(v)) > limit, lambda v: [v * 0.7], [x])


def scanned(x, n):
    return hr.scan(lambda h, row: h * 0.5 + row, x, hr.cast(n, "float32") + hr.zeros([4]))


def written(x, n):
    made = hr.TensorArray(hr.float32, 6, element_shape=[4])
    t, made = hr.while_loop(
        lambda t, m: t < 6, lambda t, m: (t + 1, m.write(t, hr.exp(x[t]))), [0, made]
    )
    return t + n, made.stack()


BUILDS = [counted, counter_left, asked, scanned, written]


def step_of(build):
    x, n = hr.placeholder("float32", [6, 4]), hr.placeholder("int32", [])
    found = build(x * 2.0, n)
    found = list(found) if isinstance(found, list | tuple) else [found]
    return x, n, [f + 1 for f in found]


# How many items a list has that was written is not known before the step, which is cut there.
@pytest.mark.parametrize("build", [b for b in BUILDS if b is not written])
def test_a_step_around_a_loop_is_one_program(build):
    x, n, wanted = step_of(build)
    with hr.Session(config=hr.Config(**EXACT)) as session:
        session.run(wanted, {x: X, n: 5})
        explained = session.explain(wanted, {x: X, n: 5})
    (part,) = explained.parts
    (inside,) = part.inside
    assert inside.title.startswith("While ")
    assert inside.number == "1.1"
    assert inside.rounds == "runs many rounds at one go"
    assert [each.number for each in inside.inside] == ["1.1.while.1", "1.1.body.1"]


@pytest.mark.parametrize("build", BUILDS)
def test_it_yields_the_bits_of_rounds_that_run_one_by_one(build):
    found = []
    for alone in (False, True):
        with hr.Graph().as_default(), pytest.MonkeyPatch.context() as patch:
            if alone:
                round_by_round(patch)
            x, n, wanted = step_of(build)
            with hr.Session(config=hr.Config(**EXACT)) as session:
                counts = [5, 5, 5, 0, 1, 3, 4, 7, 5]
                found.append([session.run(wanted, {x: X * k, n: k}) for k in counts])
    for one, other in zip(*found, strict=True):
        for a, b in zip(one, other, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("build", BUILDS)
def test_it_is_called_without_an_executor(build, monkeypatch):
    calls = []
    for kind in (LoopCall, KeepingRuns):
        plain = kind.__call__

        def noted(self, *values, plain=plain):
            found = plain(self, *values)
            calls.append((type(self), found is not None))
            return found

        monkeypatch.setattr(kind, "__call__", noted)
    x, n, wanted = step_of(build)
    with hr.Session(config=hr.Config(**EXACT)) as session:
        for _ in range(4):
            session.run(wanted, {x: X, n: 5})
    keeps = build in (counted, scanned, written)
    assert calls[-1] == (LoopCall, True)
    assert ((KeepingRuns, True) in calls) == keeps


def test_results_are_arrays_of_their_own():
    x, n, wanted = step_of(asked)
    with hr.Session(config=hr.Config(**EXACT)) as session:
        for _ in range(3):
            (first,) = session.run(wanted, {x: X, n: 5})
        kept = first.copy()
        (second,) = session.run(wanted, {x: X[::-1], n: 1})
        second[...] = 7.0
        np.testing.assert_array_equal(first, kept)


def test_a_session_that_measures_shows_the_loop_by_itself():
    x, n, wanted = step_of(scanned)
    with hr.Session(config=hr.Config(profile=True, **EXACT)) as session:
        session.run(wanted, {x: X, n: 5})
        explained = session.explain(wanted, {x: X, n: 5})
    assert any(part.title.startswith("While") for part in explained.parts)


def test_closing_the_session_ends_a_loop():
    n = hr.placeholder("float32", [])
    y = hr.while_loop(lambda y: y >= n, lambda y: [hr.minimum(y + 1.0, 2.0)], [hr.constant(1.0)])
    session = hr.Session(config=hr.Config(**EXACT))
    for _ in range(3):
        assert session.run(y, {n: 3.0}) == 1.0
    timer = threading.Timer(0.3, session.close)
    timer.start()
    began = time.monotonic()
    with pytest.raises(CancelledError, match="the session was closed"):
        session.run(y, {n: 0.0})
    assert time.monotonic() - began < 5
    timer.join()


def test_missing_items_are_a_list_of_nothing():
    items = MissingItems(5)
    assert list(items) == [None] * 5
    assert (len(items), items[4], items[-5], list(items[1:3])) == (5, None, None, [None, None])
    for index in (5, -6):
        with pytest.raises(IndexError, match="range object index out of range"):
            items[index]
    assert len(ListValue(items).without_last(2).items) == 3
