"""Runs of a loop take the places of the run before, as far as they are the same."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import headrace as hr
from headrace.errors import HeadraceError
from headrace_cpu.loops import run_layout
from tests.backend_cpu.loops.one_by_one import round_by_round

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

RNG = np.random.default_rng(3)
CONFIG = {"compile_after": 0, "compile_wait": True, "threads": 1}
WEIGHTS = (RNG.standard_normal((3, 3)) / 2).astype(np.float32)


def cell(h, x):
    return hr.tanh(hr.matmul(h, hr.constant(WEIGHTS)) + x)


def scanned(x, order):
    return hr.scan(cell, x, hr.zeros([2, 3]))


def folded(x, order):
    return hr.foldl(cell, x, hr.zeros([2, 3]))


def mapped(x, order):
    return hr.map_fn(lambda row: hr.tanh(row) * 2.0 - row, x)


def from_the_first(x, order):
    """Keep what begins with a value that is fed, as the first of what is kept."""
    return hr.scan(lambda h, row: h * 0.5 + row, x[1:], x[0])


def by_index(x, order):
    count = hr.shape(x)[0]
    return hr.while_loop(
        lambda t, h: t < count,
        lambda t, h: (t + 1, cell(h, x[t])),
        [0, hr.zeros([2, 3])],
    )[1]


def in_an_order(x, order):
    places = hr.TensorArray(hr.int32, 5).unstack(order)
    made = hr.TensorArray(hr.float32, 5, element_shape=[2, 3])
    return hr.while_loop(
        lambda t, m: t < 5,
        lambda t, m: (t + 1, m.write(places.read(t), hr.exp(x[t]))),
        [0, made],
    )[1].stack()


def asked(x, order):
    """Keep the values of as many rounds as it takes."""
    return hr.while_loop(
        lambda h: hr.reduce_sum(hr.abs(h)) > 0.5, lambda h: [hr.tanh(h) * 0.8], [x[0]]
    )


BUILDS = {
    "scan": scanned,
    "foldl": folded,
    "map_fn": mapped,
    "from the first": from_the_first,
    "by index": by_index,
    "in an order": in_an_order,
    "asked": asked,
}


def made(build, shape=(5, 2, 3)):
    """Return placeholders, and what a loop and its gradient yield."""
    x, order = hr.placeholder("float32", shape), hr.placeholder("int32", [5])
    found = build(x, order)
    found = list(found) if isinstance(found, list | tuple) else [found]
    return x, order, [*found, *hr.gradients(found, [x])]


def feeds(count, length=lambda step: 5):
    """Return the values of some steps: others in each, elsewhere in memory."""
    found = []
    for step in range(count):
        x = RNG.standard_normal((length(step), 2, 3)).astype(np.float32)
        found.append((x, RNG.permutation(5).astype(np.int32)))
    return found


def results(build, given, shape=(5, 2, 3)):
    """Return what steps yield, all of which stays alive until the last."""
    with hr.Graph().as_default():
        x, order, wanted = made(build, shape)
        with hr.Session(config=hr.Config(**CONFIG)) as session:
            return [session.run(wanted, {x: a, order: b}) for a, b in given]


@pytest.mark.parametrize("name", BUILDS)
def test_each_step_has_its_own_values(name, monkeypatch):
    given = feeds(8)
    found = results(BUILDS[name], given)
    round_by_round(monkeypatch)
    for one, other in zip(found, results(BUILDS[name], given), strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["scan", "foldl", "map_fn", "by index"])
def test_the_number_of_rounds_may_be_another_one(name, monkeypatch):
    given = feeds(8, lambda step: 5 + step // 3 % 2)
    found = results(BUILDS[name], given, (None, 2, 3))
    round_by_round(monkeypatch)
    for one, other in zip(found, results(BUILDS[name], given, (None, 2, 3)), strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", [n for n in BUILDS if n not in ("in an order", "asked")])
def test_places_are_found_once(name, monkeypatch):
    settings, begin = [], run_layout.Setting.__init__

    def noted(self, *given):
        settings.append(self)
        begin(self, *given)

    monkeypatch.setattr(run_layout.Setting, "__init__", noted)
    with hr.Graph().as_default():
        x, order, wanted = made(BUILDS[name])
        with hr.Session(config=hr.Config(**CONFIG)) as session:
            for number, (a, b) in enumerate(feeds(6)):
                session.run(wanted, {x: a, order: b})
                if number == 1:
                    before = len(settings)
    assert before
    assert len(settings) == before


@pytest.mark.parametrize("name", BUILDS)
def test_nothing_of_a_run_stays(name, monkeypatch):
    rooms, room = [], run_layout.room

    def noted(*given):
        found = room(*given)
        rooms.append(weakref.ref(found))
        return found

    monkeypatch.setattr(run_layout, "room", noted)
    given = feeds(4)
    with hr.Graph().as_default():
        x, order, wanted = made(BUILDS[name])
        with hr.Session(config=hr.Config(**CONFIG)) as session:
            for a, b in given:
                session.run(wanted, {x: a, order: b})
            inputs = [weakref.ref(a) for a, _ in given]
            del a, b
            given.clear()
            gc.collect()
            assert rooms
            assert [ref for ref in (*rooms, *inputs) if ref() is not None] == []


def test_an_order_that_does_not_fit_is_told():
    with hr.Graph().as_default():
        x, order, wanted = made(in_an_order)
        with hr.Session(config=hr.Config(**CONFIG)) as session:
            for a, b in feeds(3):
                session.run(wanted, {x: a, order: b})
            with pytest.raises(HeadraceError, match="was written already"):
                session.run(wanted, {x: a, order: [0, 1, 2, 1, 4]})
            with pytest.raises(HeadraceError, match="index 5 is out of range"):
                session.run(wanted, {x: a, order: [0, 1, 2, 5, 4]})
            found = session.run(wanted[0], {x: a, order: [4, 3, 2, 1, 0]})
            np.testing.assert_allclose(found[::-1], np.exp(a), rtol=1e-6)


def test_what_does_not_come_again_is_freed_with_the_run(monkeypatch):
    """At once, and not when cycles are collected: a step would find new pages for its arrays."""
    settings, begin = [], run_layout.Setting.__init__

    def noted(self, *given):
        begin(self, *given)
        settings.append(weakref.ref(self))

    monkeypatch.setattr(run_layout.Setting, "__init__", noted)
    # As for what is too large to be kept in one array.
    monkeypatch.setattr(run_layout, "room", lambda *given: None)
    with hr.Graph().as_default():
        x, order, wanted = made(scanned)
        with hr.Session(config=hr.Config(**CONFIG)) as session:
            for a, b in feeds(2):
                session.run(wanted, {x: a, order: b})
            gc.collect()
            gc.disable()
            try:
                settings.clear()
                for a, b in feeds(3):
                    session.run(wanted, {x: a, order: b})
                assert settings
                assert [ref for ref in settings if ref() is not None] == []
            finally:
                gc.enable()
