"""Kernels that are compiled behind the steps: values, reports, errors, caches and threads."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest

import headrace as hr
from headrace_cpu.native import build as build_module
from headrace_cpu.program.instruction import Instruction
from headrace_cpu.program.program import Program
from tests.children import run_program
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(120)
BEHIND = {"compile_wait": False, "compile_after": 1}


def model() -> tuple[hr.Tensor, list[hr.Tensor], np.ndarray]:
    x = hr.placeholder(hr.float32, [None, 16], name="x")
    y = hr.tanh(x) * 2.0
    value = np.random.default_rng(3).normal(size=(8, 16)).astype(np.float32)
    return x, [y, hr.reduce_sum(hr.exp(y - hr.reduce_max(y, axis=1, keepdims=True)), axis=1)], value


def compiled(session: hr.Session, fetches: object, feeds: object) -> str:
    """Return what ``explain`` says of the kernels."""
    lines = [line for part in session.explain(fetches, feeds).parts for line in part.compiled]
    return lines[-1]


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """An event that kernels wait for before they are compiled."""
    opened = threading.Event()
    made = Instruction.compiled

    def held(self: Instruction) -> list[int]:
        assert opened.wait(60)
        return made(self)

    monkeypatch.setattr(Instruction, "compiled", held)
    return opened


def test_steps_run_plainly_until_all_kernels_are_there(gate: threading.Event) -> None:
    x, fetches, value = model()
    feeds = {x: value}
    with hr.Session(config=hr.Config(executor="plain")) as session:
        wanted = session.run(fetches, feeds)
    with hr.Session(config=hr.Config(**BEHIND)) as session:
        assert "compiled after 1 more run" in compiled(session, fetches, feeds)
        for _ in range(4):
            for one, other in zip(session.run(fetches, feeds), wanted, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-5)
        assert "kernels being compiled for" in compiled(session, fetches, feeds)
        gate.set()
        wait_until(lambda: "being compiled" not in compiled(session, fetches, feeds), within_s=60.0)
        assert "after 1 run" in compiled(session, fetches, feeds)
        for one, other in zip(session.run(fetches, feeds), wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5)
        lines = session.explain(fetches, {x: value[:3]}).parts[0].compiled
        assert any(
            "planned again" in line and "of x:0 [3, 16] had not come" in line for line in lines
        )
        assert "planned again" in str(session.explain(fetches, {x: value[:3]}))
    assert not [t for t in threading.enumerate() if t.name.startswith("headrace-background")]


@pytest.mark.parametrize(
    "config",
    [{"compile_wait": True}, {"deterministic": True}, {"verify": True}, {"compile_after": 0}],
    ids=str,
)
def test_steps_wait_where_that_is_asked_for(config: dict[str, object]) -> None:
    x, fetches, value = model()
    with hr.Session(config=hr.Config(**{**BEHIND, **config})) as session:
        for _ in range(2):
            session.run(fetches, {x: value})
        said = compiled(session, fetches, {x: value})
        assert "being compiled" not in said
        assert "no kernels yet" not in said


def test_a_kernel_is_compiled_once_by_threads_that_want_it_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path))
    monkeypatch.setattr(build_module, "_ADDRESSES", {})
    made, begun = [], threading.Barrier(4)
    compile_source = build_module.compile_python

    def counted(source: object, symbol: str) -> bytes:
        made.append(symbol)
        time.sleep(0.05)
        return compile_source(source, symbol)

    monkeypatch.setattr(build_module, "compile_python", counted)
    source = build_module.KernelSource("nothing", "def nothing(block):\n    one = 1\n")
    found: list[list[int]] = []

    def want() -> None:
        begun.wait()
        found.append(build_module.build([source]))

    threads = [threading.Thread(target=want) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert len(found) == 4
    assert all(one == found[0] for one in found)


def test_what_does_not_compile_is_told_once_and_numpy_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(self: Instruction) -> list[int]:
        raise TypeError("a fault of the generator")

    monkeypatch.delenv("HEADRACE_QUIET", raising=False)
    monkeypatch.setattr("headrace_cpu.native.report._said", set())
    monkeypatch.setattr(Instruction, "compiled", fails)
    x, fetches, value = model()
    with caplog.at_level("INFO", "headrace"), hr.Session(config=hr.Config(**BEHIND)) as session:
        first = session.run(fetches, {x: value})
        for _ in range(5):
            again = session.run(fetches, {x: value})
    for one, other in zip(first, again, strict=True):
        assert one.tobytes() == other.tobytes()
    said = [
        r.getMessage() for r in caplog.records if "no kernel can be generated" in r.getMessage()
    ]
    assert len(said) == 1
    assert "a fault of the generator" in said[0]


def test_the_memory_of_an_instance_is_used_again(gate: threading.Event) -> None:
    gate.set()
    x, fetches, value = model()
    with hr.Session(config=hr.Config(compile_wait=True, compile_after=1)) as session:
        session.run(fetches, {x: value})
        plan = next(p.step.plan for p in session._prepared.values())
        (program,) = plan.nodes[0].region.programs.values()
        assert isinstance(program, Program)
        before = program._free[0].__dict__["arena"]
        session.run(fetches, {x: value})
        assert program._free[0].__dict__["arena"] is before


PROGRAM = """
    import numpy as np
    import headrace as hr
    x = hr.placeholder(hr.float32, [64, 32])
    y = hr.reduce_sum(hr.tanh(x) * hr.sigmoid(x + 1.0), axis=1)
    with hr.Session() as session:
        for _ in range(4):
            session.run(y, {x: np.ones((64, 32), np.float32)})
    """


def test_the_next_process_finds_every_kernel(tmp_path: Path) -> None:
    env = {
        "HEADRACE_CACHE": str(tmp_path),
        "HEADRACE_COMPILE_WAIT": "0",
        "HEADRACE_QUIET": None,
    }
    said = [run_program(PROGRAM, env=env).stderr for _ in range(2)]
    assert "headrace: compiled 1 kernel in" in said[0]
    assert said[1] == ""


@pytest.mark.parametrize(("rows", "first"), [(1 << 18, True), (8, False)], ids=["long", "short"])
def test_a_long_first_step_runs_kernels_that_are_there(
    rows: int, first: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path))
    monkeypatch.setattr(build_module, "_ADDRESSES", {})
    x, fetches, _ = model()
    feeds = {x: np.random.default_rng(4).normal(size=(rows, 16)).astype(np.float32)}
    config = {"compile_wait": False, "compile_after": 3}
    with hr.Session(config=hr.Config(**config)) as session:
        plain = session.run(fetches, feeds)
        assert "compiled after 2 more runs" in compiled(session, fetches, feeds)
    with hr.Session(config=hr.Config(compile_after=0)) as session:
        session.run(fetches, feeds)
    with hr.Session(config=hr.Config(**config)) as session:
        found = session.run(fetches, feeds)
        wait_until(lambda: "being compiled" not in compiled(session, fetches, feeds), within_s=60.0)
        said = compiled(session, fetches, feeds)
        assert ("before the first run" in said) is first
        assert ("compiled after 2 more runs" in said) is not first
        for _ in range(2):
            session.run(fetches, feeds)
    for one, other in zip(found, plain, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_the_due_step_runs_kernels_that_are_there_in_a_moment() -> None:
    x, fetches, value = model()
    for _ in range(2):
        with hr.Session(config=hr.Config(**BEHIND)) as session:
            session.run(fetches, {x: value})
            session.run(fetches, {x: value})
            said = compiled(session, fetches, {x: value})
    # The first session compiled all of them before it was closed.
    assert "being compiled" not in said
