"""Nests of many elements: threads take parts of them one by one, from a counter that they share."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import headrace as hr
from headrace_cpu.fusion import kernel as fused_kernel
from headrace_cpu.fusion import loops

RNG = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def _small_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small nests have many turns, and small kernels many threads."""
    monkeypatch.setattr(loops, "_MANY", 100)
    monkeypatch.setattr(loops, "_TURN", 64)
    monkeypatch.setattr(fused_kernel, "_WORTH_A_THREAD", 1)


def softmax(x):
    """Three phases in each row."""
    wide = x.astype(np.float64)
    exps = np.exp(wide - wide.max(-1, keepdims=True))
    return exps / exps.sum(-1, keepdims=True)


def centred(x):
    """Two nests: the second reads what the first has summed."""
    wide = x.astype(np.float64)
    return np.tanh(wide - wide.mean(0))


PROGRAMS = {
    "map": (lambda x: hr.exp(-x) * x, lambda x: np.exp(-x) * x),
    "rows": (hr.nn.softmax, softmax),
    "nests": (lambda x: hr.tanh(x - hr.reduce_mean(x, axis=0)), centred),
}
SHAPES = [(64,), (101,), (6401,), (7, 129), (129, 7), (3, 5, 70)]


def session_of(threads):
    return hr.Session(config=hr.Config(compile_after=1, threads=threads))


@pytest.mark.parametrize("threads", [1, 5])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("program", PROGRAMS)
def test_every_element_is_computed_once_in_every_step(program, shape, threads):
    build, reference = PROGRAMS[program]
    with hr.Graph().as_default():
        x = hr.placeholder(hr.float32, shape)
        y = build(x)
        with session_of(threads) as session:
            for _ in range(5):
                value = RNG.normal(size=shape).astype(np.float32)
                got = session.run(y, {x: value})
                np.testing.assert_allclose(got, reference(value), rtol=3e-6, atol=3e-7)


def test_maps_and_rows_are_taken_in_turns_but_sums_of_threads_are_not():
    with hr.Graph().as_default():
        x = hr.placeholder(hr.float32, [50, 40])
        feeds = {x: np.ones((50, 40), np.float32)}
        made = {"map": hr.exp(x) * x, "row": hr.nn.softmax(x), "sum": hr.reduce_sum(hr.exp(x))}
        with session_of(2) as session:
            taken = {}
            for name, tensor in made.items():
                for _ in range(3):
                    session.run(tensor, feeds)
                taken[name] = "take(counters" in session.explain(tensor, feeds).source()
    assert taken == {"map": True, "row": True, "sum": False}


def test_updates_in_place_are_made_once():
    with hr.Graph().as_default():
        v = hr.Variable(np.zeros(5000, np.float32), name="v")
        step = hr.assign_add(v, hr.exp(v * 0.0))
        with session_of(3) as session:
            session.run(hr.global_variables_initializer())
            for _ in range(20):
                session.run(step)
            np.testing.assert_array_equal(session.run(v), np.full(5000, 20, np.float32))


@pytest.mark.timeout(60)
def test_steps_at_the_same_time_have_counters_of_their_own():
    with hr.Graph().as_default():
        x = hr.placeholder(hr.float32, [10_000])
        y = hr.exp(x)
        failures = []
        with session_of(4) as session:

            def work(seed):
                rng = np.random.default_rng(seed)
                for _ in range(40):
                    value = rng.normal(size=10_000).astype(np.float32)
                    if not np.allclose(session.run(y, {x: value}), np.exp(value), rtol=1e-5):
                        failures.append(seed)

            workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
    assert not failures
