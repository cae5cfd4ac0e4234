"""Loops within loops: calls among the calls of a round, with the bits of rounds run one by one."""

from __future__ import annotations

import _thread
import threading
import time

import numpy as np
import pytest

import headrace as hr
from headrace.errors import DeadlineExceededError, HeadraceError
from headrace_cpu.loops import loop_call, loop_program
from tests.backend_cpu.loops.one_by_one import round_by_round

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

RNG = np.random.default_rng(4)
XS = [RNG.standard_normal((6, 4)).astype(np.float32) for _ in range(3)]
WEIGHTS = (RNG.standard_normal((4, 4)) / 2).astype(np.float32)
EXACT = {"compile_after": 0, "compile_wait": True, "threads": 1}
MANY = "runs many rounds at one go"


def times(count, body, *first):
    return hr.while_loop(
        lambda t, *_: t < count, lambda t, *v: (t + 1, *body(t, *v)), [hr.constant(0), *first]
    )[1:]


def plain(x):
    def outer(t, v):
        (w,) = times(4, lambda s, w: [hr.tanh(w * 1.1 + x)], v)
        return [w / (1.0 + hr.reduce_max(hr.abs(w)))]

    return times(5, outer, x * 1.0)


def picked(x):
    """Read a row by the inner counter, and one by the outer one."""

    def outer(t, v):
        row = hr.cos(x[t])
        (w,) = times(6, lambda s, w: [w * 0.5 + x[s] * row], v)
        return [hr.sin(w)]

    return times(6, outer, x[0])


def picked_within_by_the_outer(x):
    def outer(t, v):
        (w,) = times(6, lambda s, w: [w * 0.5 + hr.gather(x, t) * x[-1 - s]], v)
        return [hr.sin(w)]

    return times(6, outer, x[0])


def numbers_of_rounds(x):
    def outer(t, v):
        step = hr.cast(t, "float32")
        (w,) = times(3, lambda s, w: [w * 0.5 + hr.cast(s, "float32") + step], v)
        return [w - 1.0]

    return times(5, outer, x)


def asked(x):
    """Run the inner one as often as it takes, also not at all."""

    def outer(t, v):
        w = hr.while_loop(lambda w: hr.reduce_max(w) > 1.0, lambda w: [w * 0.7 - 0.01], [v])
        return [w * 1.3 + 0.05]

    return times(7, outer, x)


def outer_asked(x):
    def outer(v):
        (w,) = times(3, lambda s, w: [w * 0.9], v)
        return [w - 0.01]

    return hr.while_loop(lambda v: hr.reduce_max(v) > 0.1, outer, [x])


def both_asked(x):
    def outer(k, v):
        w = hr.while_loop(lambda w: hr.reduce_sum(w * w) > 1.0, lambda w: [w * 0.8], [v])
        return k + 1, w + 0.3

    return hr.while_loop(lambda k, v: (k < 9) & (hr.reduce_min(v) < 2.0), outer, [0, x])


def three_deep(x):
    def middle(s, w):
        (u,) = times(2, lambda r, u: [hr.tanh(u + x)], w)
        return [u * 0.5]

    def outer(t, v):
        (w,) = times(3, middle, v)
        return [w + 0.1]

    return times(4, outer, x)


def two_of_them(x):
    def outer(t, v, u):
        (v,) = times(3, lambda s, w: [hr.matmul(w, WEIGHTS)], v)
        (u,) = times(2, lambda s, w: [w + v], u)
        return hr.tanh(v), hr.tanh(u)

    return times(5, outer, x, x * 2.0)


def changing_places(x):
    def outer(t, v, u):
        v, u = times(3, lambda s, a, b: [b, a * 0.5], v, u)
        return u, v + 1.0

    return times(5, outer, x, x * 2.0)


def left_alone(x):
    def outer(t, v):
        w, u = times(3, lambda s, a, b: [a * 0.5 + b, b], v, x)
        return [w * u]

    return times(5, outer, x)


def no_rounds(x):
    def outer(t, v):
        w, _ = times(0, lambda s, a, b: [a * 0.5, b], v, x)
        return [w * 0.5]

    return times(5, outer, x)


def doubles(x):
    y = hr.cast(x, "float64")

    def outer(t, v):
        (w,) = times(4, lambda s, w: [hr.sqrt(hr.abs(w)) + y], v)
        return [w * 0.25]

    return times(5, outer, y)


def whole_numbers(x):
    def outer(t, k):
        (j,) = times(3, lambda s, j: [j * 3 + s], k)
        return [j % 1000 + t]

    return times(6, outer, hr.cast(x * 10.0, "int32"))


def in_a_scan(x):
    def cell(h, row):
        (h,) = times(3, lambda s, h: [hr.tanh(h * 0.5 + row)], h)
        return h

    return hr.scan(cell, x, hr.zeros([4]))


def written(x):
    """Write what the inner one has found into a list."""

    def outer(t, v, made):
        (v,) = times(3, lambda s, w: [hr.cos(w)], v)
        return v, made.write(t, v)

    made = hr.TensorArray(hr.float32, 5, element_shape=[6, 4])
    v, made = times(5, outer, x, made)
    return v, made.stack()


def nothing_else(x):
    """Have nothing in the outer body but the inner loop."""
    return times(5, lambda t, v: times(3, lambda s, w: [w * 0.5 + 1.0], v), x)


def how_often_depends(x):
    def outer(t, v):
        (w,) = times(t, lambda s, w: [w * 0.5 + 1.0], v)
        return [w]

    return times(5, outer, x)


def counter_read(x):
    def outer(t, v):
        s, w = hr.while_loop(lambda s, w: s < 4, lambda s, w: (s + 2, w * 0.5), [t * 0, v])
        return [w + hr.cast(s, "float32")]

    return times(5, outer, x)


def lists_within(x):
    def outer(t, v):
        return [hr.scan(lambda h, row: h * 0.5 + row, v, v[0])]

    return times(5, outer, x)


# Loops, with whether all of their rounds run at one go.
LOOPS = {
    "plain": (plain, True),
    "picked": (picked, True),
    "picked within by the outer": (picked_within_by_the_outer, False),
    "numbers of rounds": (numbers_of_rounds, True),
    "asked": (asked, True),
    "outer asked": (outer_asked, True),
    "both asked": (both_asked, True),
    "three deep": (three_deep, True),
    "two of them": (two_of_them, True),
    "changing places": (changing_places, True),
    "left alone": (left_alone, True),
    "no rounds": (no_rounds, False),
    "doubles": (doubles, True),
    "whole numbers": (whole_numbers, True),
    "in a scan": (in_a_scan, True),
    "written": (written, True),
    "nothing else": (nothing_else, True),
    "how often depends": (how_often_depends, False),
    "counter read": (counter_read, False),
    "lists within": (lists_within, False),
}


def runs(build, config, xs=XS, wrt=False, steps=3):
    """Return what the last of some steps yields for each x, and how the rounds ran."""
    with hr.Graph().as_default():
        x = hr.placeholder("float32", [6, 4])
        found = build(x)
        found = list(found) if isinstance(found, list | tuple) else [found]
        if wrt:
            floats = [f for f in found if f.dtype.is_floating]
            found += [g for g in hr.gradients(floats, [x]) if g is not None]
        with hr.Session(config=hr.Config(**config)) as session:
            values = [[session.run(found, {x: v}) for _ in range(steps)][-1] for v in xs]
            explained = session.explain(found, {x: xs[0]})
        told = [part.rounds for part in explained.walk() if part.title.startswith("While")]
        return values, told


def one_by_one(*given, **named):
    with pytest.MonkeyPatch.context() as patch:
        round_by_round(patch)
        return runs(*given, **named)[0]


def alike(one, other):
    for values, others in zip(one, other, strict=True):
        for a, b in zip(values, others, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


FORWARDS = [pytest.param(name, False, id=f"{name}-forwards") for name in LOOPS]
# Whole numbers have no gradients.
GRADIENTS = [pytest.param(n, True, id=f"{n}-gradients") for n in LOOPS if n != "whole numbers"]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("name", "wrt"), FORWARDS + GRADIENTS)
def test_loops_within_yield_the_bits_of_rounds_that_run_one_by_one(name, wrt):
    build, whole = LOOPS[name]
    found, told = runs(build, EXACT, wrt=wrt)
    alike(found, one_by_one(build, EXACT, wrt=wrt))
    for values, others in zip(found, runs(build, {"executor": "plain"}, wrt=wrt)[0], strict=True):
        for a, b in zip(values, others, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5)
    assert not whole or wrt or set(told) == {MANY}, told


@pytest.mark.one_in(2)
@pytest.mark.parametrize("config", [{"threads": 2}, {"deterministic": True}, {"onednn": False}])
@pytest.mark.parametrize("name", ["plain", "two of them", "both asked", "in a scan"])
def test_they_yield_the_same_bits_however_kernels_run(name, config):
    build, config = LOOPS[name][0], {**EXACT, **config}
    alike(runs(build, config)[0], one_by_one(build, config))


@pytest.mark.parametrize("many", [1, 2, 7])
@pytest.mark.parametrize("name", [n for n, (_, whole) in LOOPS.items() if whole])
def test_they_go_on_in_the_middle_of_a_round(name, many, monkeypatch):
    build = LOOPS[name][0]
    wanted = one_by_one(build, EXACT)
    for module in (loop_call, loop_program):
        monkeypatch.setattr(module, "FIRST_BEGUN", many)
        # As many in each slice, however long they took.
        monkeypatch.setattr(module, "perf_counter", lambda: 0.0)
        monkeypatch.setattr(module, "SLICE_S", 1e-9)
    alike(runs(build, EXACT)[0], wanted)


def test_products_of_libraries_run_within():
    rng = np.random.default_rng(1)
    weights = (rng.normal(size=(64, 64)) / 8).astype(np.float32)

    def build(x):
        def outer(t, v):
            (w,) = times(4, lambda s, w: [hr.tanh(hr.matmul(w, weights))], v)
            return [w + 0.1]

        return times(5, outer, hr.tile(x, [8, 16]))

    for config in ({}, {"onednn": False}, {"threads": 2}):
        found, told = runs(build, {**EXACT, **config})
        alike(found, one_by_one(build, {**EXACT, **config}))
        assert set(told) == {MANY}


def test_what_fails_within_is_told_as_by_the_round():
    said = []
    for alone in (False, True):
        with hr.Graph().as_default(), pytest.MonkeyPatch.context() as patch:
            if alone:
                round_by_round(patch)
            k = hr.placeholder("int32", [])
            rows = hr.constant(np.arange(12.0, dtype=np.float32).reshape(4, 3))

            def outer(t, v, k=k, rows=rows):
                (w,) = times(3, lambda s, w: [w + hr.gather(rows, k - t)], v)
                return [w * 0.5]

            found = times(4, outer, hr.zeros([3]))
            with hr.Session(config=hr.Config(**EXACT)) as session:
                for _ in range(3):
                    fine = session.run(found, {k: 3})
                for _ in range(2):
                    with pytest.raises(HeadraceError, match="index -1 is out of range") as caught:
                        session.run(found, {k: 2})
                said.append(str(caught.value))
                np.testing.assert_array_equal(session.run(found, {k: 3}), fine)
    assert said[0] == said[1]


def test_steps_that_run_at_the_same_time_have_memory_of_their_own():
    with hr.Graph().as_default():
        x = hr.placeholder("float32", [6, 4])
        found = [*plain(x), *both_asked(x)]
        with hr.Session(config=hr.Config(**EXACT)) as session:
            wanted = [session.run(found, {x: v}) for v in XS for _ in range(3)][::3]
            wrong = []

            def work(number):
                for _ in range(50):
                    got = session.run(found, {x: XS[number]})
                    for a, b in zip(got, wanted[number], strict=True):
                        if not np.array_equal(a, b):
                            wrong.append(number)

            threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert not wrong


def test_values_of_one_step_stay_as_they_are_in_the_next():
    with hr.Graph().as_default():
        x = hr.placeholder("float32", [6, 4])
        found = [*plain(x), *asked(x)]
        with hr.Session(config=hr.Config(**EXACT)) as session:
            for _ in range(3):
                first = session.run(found, {x: XS[0]})
            kept = [np.array(f) for f in first]
            session.run(found, {x: XS[1]})
            alike([first], [kept])


def endless():
    """Return a loop whose single rounds take minutes, after short ones have made it kernels."""
    least = hr.placeholder("float32", [])

    def outer(t, v):
        def inner(u):
            return [hr.minimum(u * 1.0001, 2.0)]

        return [hr.while_loop(lambda u: u >= least, inner, [v]) + 0.0]

    return least, times(5, outer, hr.constant(1.0))[0]


def test_a_loop_within_notices_that_its_time_is_over():
    with hr.Graph().as_default():
        least, y = endless()
        with hr.Session(config=hr.Config(**EXACT)) as session:
            for _ in range(3):
                assert session.run(y, {least: 9.0}) == 1.0
            for _ in range(2):
                began = time.monotonic()
                with pytest.raises(DeadlineExceededError, match="timeout"):
                    session.run(y, {least: 0.0}, options=hr.RunOptions(timeout_in_ms=300))
                assert time.monotonic() - began < 5
            assert session.run(y, {least: 9.0}) == 1.0


@pytest.mark.usefixtures("interrupts")
def test_a_loop_within_is_interrupted():
    with hr.Graph().as_default():
        least, y = endless()
        with hr.Session(config=hr.Config(**EXACT)) as session:
            for _ in range(3):
                session.run(y, {least: 9.0})
            timer = threading.Timer(0.3, _thread.interrupt_main)
            timer.start()
            began = time.monotonic()
            with pytest.raises(KeyboardInterrupt):
                session.run(y, {least: 0.0})
            assert time.monotonic() - began < 5
            timer.join()
            assert session.run(y, {least: 9.0}) == 1.0


def _inner(rng, v, depth):
    """Return a loop made at random of variables [6, 4], perhaps with others inside."""
    count, rounds = int(rng.integers(1, 4)), int(rng.integers(0, 5))
    kinds = [
        lambda a, b, t: a * 0.5 + b * 0.25,
        lambda a, b, t: hr.maximum(a, b) - 0.5,
        lambda a, b, t: hr.reverse(a, [0]) * 0.75,
        lambda a, b, t: b,
        lambda a, b, t: a - v[t],
        lambda a, b, t: hr.matmul(hr.tanh(a), WEIGHTS) + b * 0.1,
        lambda a, b, t: hr.where(a > b, a, b * 0.5) * 0.9,
        lambda a, b, t: hr.tanh(a) + hr.cast(t, "float32"),
        lambda a, b, t: hr.reduce_mean(b, 0, keepdims=True) + a * 0.5,
    ]
    if depth:
        kinds += [lambda a, b, t: _inner(np.random.default_rng(seed), a, depth - 1)] * 5
    seed = int(rng.integers(1000))
    which = [(int(rng.integers(len(kinds))), int(rng.integers(count))) for _ in range(count)]
    asks = rng.random() < 0.3

    def body(t, *vs):
        return [kinds[k](a, vs[j], t) for a, (k, j) in zip(vs, which, strict=True)]

    first = [v * (j + 1.0) for j in range(count)]
    if not asks:
        return times(rounds, body, *first)[-1]
    return hr.while_loop(
        lambda t, *vs: (t < rounds) & (hr.reduce_max(vs[0]) > 0.5),
        lambda t, *vs: (t + 1, *body(t, *vs)),
        [hr.constant(0), *first],
    )[-1]


@pytest.mark.parametrize("wrt", [False, True], ids=["forwards", "gradients"])
@pytest.mark.parametrize("seed", range(12))
def test_random_loops_within_loops(seed, wrt):
    def build(x):
        return _inner(np.random.default_rng(seed), x, 2)

    found, _ = runs(build, EXACT, wrt=wrt)
    alike(found, one_by_one(build, EXACT, wrt=wrt))
    for values, others in zip(found, runs(build, {"executor": "plain"}, wrt=wrt)[0], strict=True):
        for a, b in zip(values, others, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)
