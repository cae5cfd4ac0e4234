"""Denormals: kept by default, flushed in every kernel and thread of a step that asks for it."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace_cpu.native import denormals

SMALL, SMALL_64 = 1e-21, 1e-156  # whose squares are denormals
EXECUTORS = ("plan", "plain")
SIZE = 320  # large enough for several threads

if denormals._register() is None:  # pragma: no cover - other processors
    pytest.skip("denormals cannot be flushed here", allow_module_level=True)


def _fed() -> tuple[dict[str, Any], dict[Any, Any]]:
    """Return placeholders by name, and what they are fed."""
    values = {
        "x": np.full(50, 1e-40, np.float32),
        "d": np.full(50, 1e-310),
        "m": np.full((SIZE, SIZE), SMALL, np.float32),
        "e": np.full((SIZE, SIZE), SMALL_64),
        "image": np.full((2, 16, 16, 8), SMALL, np.float32),
    }
    holders = {name: hr.placeholder(v.dtype, v.shape) for name, v in values.items()}
    return holders, {holders[name]: v for name, v in values.items()}


# What makes denormals, or takes some; all elements of each result are alike.
PROGRAMS = {
    "sum": lambda p: p["x"] + p["x"],
    "product": lambda p: p["m"] * p["m"],
    "double": lambda p: p["d"] * 3.0,
    "double product": lambda p: p["e"] * p["e"],
    "constant": lambda p: hr.constant(1e-40) * 3.0,
    "constant of doubles": lambda p: hr.constant(SMALL_64, hr.float64) * SMALL_64,
    "matmul": lambda p: hr.matmul(p["m"], p["m"]),
    "matmul of doubles": lambda p: hr.matmul(p["e"], p["e"]),
    "thin matmul": lambda p: hr.matmul(p["m"], p["m"][:, :2]),
    "batch of matmuls": lambda p: hr.matmul(p["m"][None] * [[[1.0]], [[2.0]]], p["m"][None]),
    "convolution": lambda p: hr.nn.conv2d(
        p["image"], hr.fill([3, 3, 8, 8], np.float32(SMALL)), 1, "VALID"
    ),
    "reduction": lambda p: hr.reduce_sum(p["m"] * p["m"], 0),
    "whole reduction": lambda p: hr.reduce_sum(p["e"] * p["e"]),
    "conversion": lambda p: hr.cast(p["d"], hr.float64) * 2.0,
    "branch": lambda p: hr.cond(p["m"][0, 0] < 1, lambda: p["x"] * 3.0, lambda: p["x"] * 5.0),
    "loop": lambda p: hr.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 3.0), [0, p["x"]])[
        1
    ],
    "rows": lambda p: hr.map_fn(lambda v: v * 3.0, p["x"]),
    "linear algebra": lambda p: hr.linalg.sqrtm(hr.reshape(p["d"][:1], [1, 1])),
    "cumulative": lambda p: hr.cumsum(p["m"] * p["m"], axis=1),
}


@pytest.mark.parametrize(
    ("executor", "threads", "asked"),
    [
        ("plan", 1, "flush"),
        ("plan", 1, None),
        ("plan", 2, "flush"),
        ("plan", 2, "keep"),
        ("plain", 1, "keep"),
        ("plain", 2, "flush"),
        ("plain", 2, None),
    ],
)
def test_all_kernels_and_threads_do_as_the_session_asks(
    executor: str, threads: int, asked: str | None
) -> None:
    with hr.Graph().as_default():
        holders, feeds = _fed()
        fetches = {name: make(holders) for name, make in PROGRAMS.items()}
        config = hr.Config(executor=executor, threads=threads, denormals=asked, compile_after=1)
        with hr.Session(config=config) as sess:
            for _ in range(3):
                found = sess.run(fetches, feeds)
                flushed = {name for name, value in found.items() if not np.any(value)}
                kept = {name for name, value in found.items() if np.all(value)}
                assert flushed == (set(PROGRAMS) if asked == "flush" else set())
                assert kept == (set() if asked == "flush" else set(PROGRAMS))
                _assert_numpy_keeps()


def _assert_numpy_keeps() -> None:
    """The program's own NumPy computes with denormals, on the threads of BLAS too."""
    assert (np.full(50, 1e-40, np.float32) * np.float32(3)).all()
    small = np.full((400, 400), SMALL_64)
    assert (small @ small).all()


@pytest.mark.parametrize("executor", EXECUTORS)
def test_sessions_of_both_kinds_take_turns_on_one_pool(executor: str) -> None:
    with hr.Graph().as_default():
        holders, feeds = _fed()
        out = [PROGRAMS[name](holders) for name in ("product", "matmul", "whole reduction")]
        sessions = {
            asked: hr.Session(
                config=hr.Config(executor=executor, threads=2, denormals=asked, compile_after=0)
            )
            for asked in ("keep", "flush")
        }
        for _ in range(4):
            for asked, sess in sessions.items():
                for value in sess.run(out, feeds):
                    assert np.all(value) if asked == "keep" else not np.any(value)
        for sess in sessions.values():
            sess.close()


def test_sessions_of_both_kinds_run_side_by_side() -> None:
    with hr.Graph().as_default():
        holders, feeds = _fed()
        out = [PROGRAMS[name](holders) for name in ("product", "sum", "reduction")]
        wrong: list[str] = []

        def work(asked: str) -> None:
            config = hr.Config(denormals=asked, compile_after=0, threads=2)
            with hr.Session(config=config, graph=graph) as sess:
                for _ in range(20):
                    found = sess.run(out, feeds)
                    wrong.extend(asked for v in found if bool(np.any(v)) != (asked == "keep"))

        graph = hr.get_default_graph()
        threads = [threading.Thread(target=work, args=(a,)) for a in ("keep", "flush")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong


@pytest.mark.parametrize("executor", EXECUTORS)
def test_python_functions_compute_with_denormals(executor: str) -> None:
    with hr.Graph().as_default():
        inner = hr.Graph()
        with inner.as_default():
            p = hr.placeholder(hr.float32, [50])
            tripled = p * 3.0
        own = hr.Session(graph=inner)

        def function(x: Any) -> Any:
            return np.stack([x * np.float32(3), own.run(tripled, {p: x})])

        x = hr.placeholder(hr.float32, [50])
        called = hr.py_func(function, [x], hr.float32)
        config = hr.Config(executor=executor, denormals="flush", compile_after=0)
        with hr.Session(config=config) as sess:
            for _ in range(2):
                numbers, flushed = sess.run(
                    [called, called * 2.0], {x: np.full(50, 1e-40, np.float32)}
                )
                assert numbers.all()
                assert not flushed.any()
        own.close()


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_step_that_fails_puts_everything_back(executor: str) -> None:
    with hr.Graph().as_default():
        x = hr.placeholder(hr.float32, [None])
        bad = hr.check_numerics(hr.log(x * 0.0 - 1.0), "no")
        config = hr.Config(executor=executor, denormals="flush", compile_after=0)
        with hr.Session(config=config) as sess:
            for _ in range(2):
                with pytest.raises(hr.errors.OpError, match="no"):
                    sess.run(bad, {x: [1.0]})
                _assert_numpy_keeps()
    assert denormals._HERE.depth == 0


def test_numpy_knows_its_smallest_numbers_after_a_step() -> None:
    with hr.Session(config=hr.Config(denormals="flush")) as sess:
        sess.run(hr.constant(1.0) + 1.0)
    for dtype in (np.float16, np.float32, np.float64, np.longdouble):
        assert np.finfo(dtype).smallest_subnormal > 0


def test_the_environment_says_where_the_session_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = hr.placeholder(hr.float32, [50])
    feeds = {x: np.full(50, 1e-40, np.float32)}
    monkeypatch.setenv("HEADRACE_DENORMALS", "flush")
    with hr.Session() as sess:
        assert not sess.run(x * 3.0, feeds).any()
    with hr.Session(config=hr.Config(denormals="keep")) as sess:
        assert sess.run(x * 3.0, feeds).all()
    monkeypatch.setenv("HEADRACE_DENORMALS", "maybe")
    with (
        pytest.raises(hr.errors.ConfigError, match="HEADRACE_DENORMALS must be keep or flush"),
        hr.Session() as sess,
    ):
        sess.run(x * 3.0, feeds)


@pytest.mark.parametrize("value", ["Flush", True, 1, "zero"])
def test_other_values_are_refused(value: Any) -> None:
    with pytest.raises(hr.errors.ConfigError, match='denormals must be "keep", "flush" or None'):
        hr.Config(denormals=value)


def test_a_processor_without_such_bits_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(denormals, "_register", lambda: None)
    with pytest.raises(hr.errors.ConfigError, match='denormals="flush" needs a processor of the'):
        hr.Config(denormals="flush")
    hr.Config(denormals="keep")
    monkeypatch.setenv("HEADRACE_DENORMALS", "flush")
    with (
        pytest.raises(hr.errors.ConfigError, match="needs a processor of the x86-64 family"),
        hr.Session() as sess,
    ):
        sess.run(hr.constant(1.0) + 1.0)


def test_a_blas_that_keeps_its_threads_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    stuck = denormals.Blas("/lib/libstuck_blas.so", {}, 1, None)
    monkeypatch.setattr(denormals, "all_blas", lambda: (stuck,))
    with pytest.raises(hr.errors.ConfigError, match=r"kept on one thread.*libstuck_blas"):
        hr.Config(denormals="flush")
