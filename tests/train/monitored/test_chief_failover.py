"""A worker's session becomes the chief's where the chief is lost. No ranks are started."""

from __future__ import annotations

import fcntl
import logging
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.extend.runtime import join_cluster, outlive_tasks, tell_chief
from headrace_train.resumption import chief_lock
from tests.waiting import wait_until

pytestmark = pytest.mark.needs("backend-cpu")

LONG_SECS = 30


class Cluster:
    """Who this process is in a cluster that goes on without a chief."""

    def __init__(self) -> None:
        self.is_chief = False
        self.leave = [join_cluster(lambda: self.is_chief), outlive_tasks()]

    def lose_chief(self) -> None:
        self.is_chief = True
        tell_chief()


class Noted(hr.train.SessionRunHook):
    """Notes what is called, and may fail."""

    def __init__(self, name: str, notes: list[str], fails: bool = False) -> None:
        self.name, self.notes, self.fails = name, notes, fails

    def note(self, what: str) -> None:
        self.notes.append(f"{self.name} {what}")

    def begin(self) -> None:
        # Hooks may build in any process.
        hr.constant(1.0)
        self.note("begin")

    def after_create_session(self, session: Any, coord: Any) -> None:
        self.note("after_create_session")
        if self.fails:
            raise ValueError("no place is left")

    def become_chief(self, session: Any, coord: Any) -> None:
        hr.constant(1.0)
        self.note("become_chief")

    def before_run(self, run_context: Any) -> None:
        self.note("before_run")

    def end(self, session: Any) -> None:
        self.note("end")


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    joined = Cluster()
    yield joined
    for leave in joined.leave:
        leave()


@pytest.fixture
def container() -> Iterator[str]:
    name = "succession_test"
    hr.Session.reset("", [name])
    yield name
    hr.Session.reset("", [name])


def model(container: str) -> Any:
    """Make a variable that all share, and count steps."""
    with hr.container(container):
        step = hr.train.get_or_create_global_step()
    return hr.assign_add(step, 1)


def trained_by_a_chief(container: str, folder: Path | None = None, steps: int = 3) -> None:
    with hr.Graph().as_default():
        train = model(container)
        with hr.train.MonitoredTrainingSession(
            checkpoint_dir=folder, save_summaries_steps=None
        ) as session:
            for _ in range(steps):
                session.run(train)


def worker(folder: Path | None, notes: list[str], **more: Any) -> Any:
    return hr.train.MonitoredTrainingSession(
        is_chief=False,
        checkpoint_dir=folder,
        save_checkpoint_steps=1000,
        save_summaries_steps=None,
        hooks=[Noted("own", notes)],
        chief_only_hooks=[Noted("chief", notes, fails=more.pop("fails", False))],
        **more,
    )


def test_a_worker_becomes_the_chief_between_steps(
    cluster: Cluster, container: str, graph: Any, tmp_path: Path
) -> None:
    trained_by_a_chief(container)
    train, notes = model(container), []
    with worker(tmp_path, notes) as session:
        assert session.run(train) == 4
        assert notes == ["own begin", "own after_create_session", "own before_run"]
        assert not any(tmp_path.iterdir())
        cluster.lose_chief()
        wait_until(lambda: "chief after_create_session" in notes)
        wait_until(lambda: (tmp_path / "checkpoint").exists())
        del notes[:3]
        # What was trained stays as it is.
        assert session.run(train) == 5
        assert graph.finalized
    assert notes == [
        *("own become_chief", "chief begin", "chief after_create_session"),
        *("chief before_run", "own before_run", "chief end", "own end"),
    ]
    assert hr.train.latest_checkpoint(tmp_path).endswith("model.ckpt-5")


def test_a_worker_in_a_step_becomes_the_chief(cluster: Cluster, container: str, graph: Any) -> None:
    trained_by_a_chief(container)
    notes: list[str] = []
    queue = hr.FIFOQueue(1, hr.int32, ())
    came = queue.dequeue()

    class Feeds(Noted):
        """Does what the step waits for."""

        def become_chief(self, session: Any, coord: Any) -> None:
            session.run(queue.enqueue(7))

    with hr.train.MonitoredTrainingSession(is_chief=False, hooks=[Feeds("own", notes)]) as session:
        threading.Timer(0.2, cluster.lose_chief).start()
        assert session.run(came) == 7


def test_a_worker_that_waits_for_the_chief_prepares_the_model(
    cluster: Cluster, container: str, tmp_path: Path
) -> None:
    trained_by_a_chief(container, tmp_path)
    hr.Session.reset("", [container])
    notes: list[str] = []

    def train() -> Any:
        with hr.Graph().as_default():
            op = model(container)
            with worker(tmp_path, notes) as session:
                return session.run(op)

    with ThreadPoolExecutor(1) as pool:
        trained = pool.submit(train)
        time.sleep(0.3)
        assert notes == ["own begin"]
        cluster.lose_chief()
        # From the checkpoint of step 3.
        assert trained.result(LONG_SECS) == 4
    assert "chief begin" in notes
    assert hr.train.latest_checkpoint(tmp_path).endswith("model.ckpt-4")


def test_a_model_that_is_ready_is_not_prepared_again(
    container: str, graph: Any, tmp_path: Path
) -> None:
    trained_by_a_chief(container, tmp_path)
    hr.Session.reset("", [container])
    # It is not as in the checkpoint.
    trained_by_a_chief(container, steps=1)
    train = model(container)
    creator = hr.train.ChiefSessionCreator(checkpoint_dir=tmp_path)
    with creator.take_over_session() as session:
        assert session.run(train) == 2


def test_a_session_that_the_chief_wanted_without_its_hooks_stays_so(
    cluster: Cluster, container: str, graph: Any, tmp_path: Path
) -> None:
    trained_by_a_chief(container)
    train, notes = model(container), []
    cluster.is_chief = True
    with worker(tmp_path, notes) as session:
        tell_chief()
        assert session.run(train) == 4
    assert not any("chief" in note for note in notes)


def test_no_more_checkpoints_are_kept_than_one_chief_keeps(
    cluster: Cluster, container: str, graph: Any, tmp_path: Path
) -> None:
    for _ in range(3):
        trained_by_a_chief(container, tmp_path, steps=1)
    train, notes = model(container), []
    scaffold = hr.train.Scaffold(saver=hr.train.Saver(max_to_keep=2))
    with worker(tmp_path, notes, scaffold=scaffold) as session:
        cluster.lose_chief()
        session.run(train)
    kept = hr.train.get_checkpoint_state(tmp_path).all_model_checkpoint_paths
    assert [Path(path).name for path in kept] == ["model.ckpt-3", "model.ckpt-4"]
    assert len(list(tmp_path.glob("model.ckpt-*.h5"))) == 2


def test_what_a_hook_raises_then_is_told(
    cluster: Cluster, container: str, graph: Any, tmp_path: Path
) -> None:
    trained_by_a_chief(container)
    train, notes = model(container), []

    def run_on() -> None:
        with worker(tmp_path, notes, fails=True) as session:
            cluster.lose_chief()
            wait_until(lambda: "chief after_create_session" in notes)
            while True:
                session.run(train)
                session.should_stop()
                if session._current.coord.should_stop():
                    return

    with pytest.raises(ValueError, match="no place is left"):
        run_on()


def test_a_chief_without_a_folder_says_that_it_saves_nothing(
    cluster: Cluster, container: str, graph: Any, caplog: pytest.LogCaptureFixture
) -> None:
    trained_by_a_chief(container)
    train, notes = model(container), []
    with caplog.at_level(logging.WARNING, "headrace.train"), worker(None, notes) as session:
        cluster.lose_chief()
        session.run(train)
    assert "the chief now, and saves nothing: no checkpoint_dir" in caplog.text
    assert notes[-2:] == ["chief end", "own end"]


def test_the_folder_of_a_process_that_ends_is_waited_for(tmp_path: Path) -> None:
    chief_lock.await_free(tmp_path)
    with (tmp_path / ".chief").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        threading.Timer(0.3, held.close).start()
        begin = time.monotonic()
        chief_lock.await_free(tmp_path)
        assert 0.2 < time.monotonic() - begin < chief_lock.MOST_S


def test_it_is_not_waited_for_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chief_lock, "MOST_S", 0.1)
    with (tmp_path / ".chief").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        chief_lock.await_free(tmp_path)
        with (
            hr.Graph().as_default() as made,
            pytest.raises(
                hr.errors.FailedPreconditionError, match=r"saves checkpoints into .* already"
            ),
        ):
            chief_lock.ChiefLock(tmp_path, made)
