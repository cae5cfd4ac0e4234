"""Checkpoints of one moment, while other threads train."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import ArgumentTypeError
from headrace_train.checkpoint import CheckpointReader

pytestmark = [pytest.mark.needs("backend-cpu", "autodiff")]


class Pair:
    """Two variables, one of which is changed a while after the other in the same step."""

    def __init__(self) -> None:
        self.step = hr.train.get_or_create_global_step()
        self.a, self.b = (hr.Variable(np.int64(0), name=name) for name in "ab")
        first = self.a.assign_add(1)
        with hr.control_dependencies([first]):
            held = hr.py_func(lambda v: time.sleep(0.001) or v, [first], hr.int64)
        with hr.control_dependencies([held]):
            second = self.b.assign_add(1)
        with hr.control_dependencies([second]):
            self.change = self.step.assign_add(1).op


class Training(threading.Thread):
    """A thread that trains until it is told to end."""

    def __init__(self, session: Any, change: Any) -> None:
        super().__init__(daemon=True)
        self.session, self.change = session, change
        self.over = threading.Event()
        self.start()

    def run(self) -> None:
        while not self.over.is_set():
            self.session.run(self.change)

    def end(self) -> None:
        self.over.set()
        self.join(10)


def values(prefix: Any) -> dict[str, int]:
    with CheckpointReader(prefix) as reader:
        return {name: int(reader.read([name])[name]) for name in ("a", "b", "global_step")}


def test_a_consistent_checkpoint_holds_one_moment_and_says_so(tmp_path: Path) -> None:
    with hr.Graph().as_default():
        pair = Pair()
        saver = hr.train.Saver(max_to_keep=None)
        with hr.Session() as session:
            session.run(hr.global_variables_initializer())
            threads = [Training(session, pair.change) for _ in range(2)]
            saved = []
            for _ in range(6):
                saved.append(saver.save(session, tmp_path / "m", pair.step, consistent=True))
                time.sleep(0.005)
            for thread in threads:
                thread.end()
    steps = []
    for prefix in saved:
        found = values(prefix)
        assert found["a"] == found["b"] == found["global_step"]
        with CheckpointReader(prefix) as reader:
            # The name says which step that is.
            assert reader.step == found["global_step"]
            assert reader.metadata["consistency"] == "one moment"
        steps.append(found["a"])
    assert len(set(steps)) > 1


def test_otherwise_nothing_is_promised(tmp_path: Path) -> None:
    with hr.Graph().as_default():
        Pair()
        saver = hr.train.Saver()
        with hr.Session() as session:
            session.run(hr.global_variables_initializer())
            path = saver.save(session, tmp_path / "m")
    with CheckpointReader(path) as reader:
        assert "consistency" not in reader.metadata


@pytest.mark.parametrize("consistency", ["relaxed", "bounded:4"])
def test_the_hook_saves_one_moment_where_it_is_asked_or_updates_are_bounded(
    consistency: str, tmp_path: Path
) -> None:
    with hr.Graph().as_default():
        pair = Pair()
        with hr.train.MonitoredTrainingSession(
            checkpoint_dir=tmp_path,
            save_checkpoint_steps=10,
            save_summaries_steps=None,
            log_step_count_steps=None,
            config=hr.Config(consistency=consistency),
            consistent=True if consistency == "relaxed" else None,
            hooks=[hr.train.StopAtStepHook(last_step=60)],
        ) as session:
            raw = session._tf_sess() if hasattr(session, "_tf_sess") else session.raw_session()
            thread = Training(raw, pair.change)
            while not session.should_stop():
                session.run(pair.change)
            thread.end()
    found = hr.train.get_checkpoint_state(tmp_path).all_model_checkpoint_paths
    assert len(found) >= 3
    for prefix in found[1:]:
        of_one = values(prefix)
        assert of_one["a"] == of_one["b"] == of_one["global_step"], prefix
        with CheckpointReader(prefix) as reader:
            assert reader.metadata["consistency"] == "one moment"


def test_the_hook_saves_what_there_is_where_others_do_not_stop(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headrace_train.hooks import checkpoint_saver

    monkeypatch.setattr(checkpoint_saver, "MOST_SECS", 0.05)
    with hr.Graph().as_default():
        pair = Pair()
        begun, over = threading.Event(), threading.Event()

        def wait() -> Any:
            begun.set()
            over.wait(10)
            return np.int64(7)

        stuck = pair.a.assign(hr.ensure_shape(hr.py_func(wait, [], hr.int64), ()))
        hook = hr.train.CheckpointSaverHook(tmp_path, save_steps=1000, consistent=True)
        scaffold = hr.train.Scaffold()
        hook._scaffold = scaffold
        creator = hr.train.ChiefSessionCreator(scaffold)
        with (
            caplog.at_level(logging.WARNING),
            hr.train.MonitoredSession(creator, hooks=[hook]) as session,
        ):
            thread = threading.Thread(target=lambda: session.run(stuck))
            thread.start()
            begun.wait(10)
            hook._save(session._tf_sess(), 5, 0.05)
            over.set()
            thread.join(10)
    assert "is saved while others train" in caplog.text
    with CheckpointReader(tmp_path / "model.ckpt-5") as reader:
        assert "consistency" not in reader.metadata


def test_a_session_without_fences_is_refused(tmp_path: Path) -> None:
    with hr.Graph().as_default() as graph:
        hr.Variable(1.0, name="v")
        saver = hr.train.Saver()
        session = hr.Session()
        session.run(hr.global_variables_initializer())

        class Other:
            run = staticmethod(session.run)

        other: Any = Other()
        other.graph = graph
        with pytest.raises(ArgumentTypeError, match="needs a session that has fences"):
            saver.save(other, tmp_path / "m", consistent=True)
        session.close()


class Failing:
    """A session whose first runs fail."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors, self.runs = list(errors), 0

    def run(self, fetches: Any) -> None:
        self.runs += 1
        if self.errors:
            raise self.errors.pop(0)


def test_a_pause_that_cannot_be_ended_is_no_silent_wait() -> None:
    from headrace.errors import ResourceExhaustedError, TaskLostError
    from headrace_train.saver.snapshot import _resumed

    full = [ResourceExhaustedError("no memory") for _ in range(2)]
    once = Failing(full[0])
    _resumed(once, None)
    assert once.runs == 2
    with pytest.raises(ResourceExhaustedError, match="no memory"):
        _resumed(Failing(*full), None)
    # The next step tells of a loss.
    lost = Failing(TaskLostError("gone"))
    _resumed(lost, None)
    assert lost.runs == 1
