"""Which checkpoints of a folder stay: counts, hours and the best, also over restarts."""

from __future__ import annotations

import json
import logging
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.errors import AttributeValueError, CheckpointError
from headrace_train.checkpoint import (
    CheckpointReader,
    get_checkpoint_state,
    latest_checkpoint,
    read_checkpoint,
    write_checkpoint,
)
from headrace_train.checkpoint.paths import file_of
from headrace_train.saver import commit as commit_module
from headrace_train.saver import retention as retention_module
from headrace_train.saver.commit import commit, in_folder
from headrace_train.saver.retention import Policy, Retention, series_of

TENSORS = {"x": np.arange(100.0)}


class Run:
    """What one process does: a saver that writes to a folder."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch | None = None, **policy: Any
    ) -> None:
        if monkeypatch is not None:
            # Another process, as far as the record is concerned.
            Run.number += 1
            monkeypatch.setattr(commit_module, "run", lambda number=Run.number: f"run-{number}")
        self.folder = folder
        limits = {"latest": 5, "hours": 10_000.0, **policy}
        self.retention = Retention(Policy(**limits))

    number = 0

    def save(self, *steps: int, name: str = "model", **options: Any) -> None:
        for step in steps:
            prefix = f"{self.folder}/{name}-{step}"

            def write(prefix: str = prefix, step: int = step) -> None:
                write_checkpoint(file_of(prefix), TENSORS, step=step)

            with in_folder(prefix):
                commit(self.retention, prefix, write, **options)


def steps(folder: Path) -> list[int]:
    return sorted(int(file.stem.rpartition("-")[2]) for file in folder.glob("*.h5"))


def damage(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-300] ^= 1
    file.write_bytes(content)


class TestCounts:
    def test_the_latest_stay(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "headrace.train")
        Run(tmp_path, latest=3).save(*range(5))
        assert steps(tmp_path) == [2, 3, 4]
        assert [record.getMessage() for record in caplog.records] == [
            f"deleted the checkpoint {tmp_path}/model-{step}, to keep the latest 3"
            for step in (0, 1)
        ]

    def test_over_restarts(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for step in range(0, 12, 2):
            Run(tmp_path, monkeypatch, latest=3).save(step, step + 1)
        assert steps(tmp_path) == [9, 10, 11]
        state = get_checkpoint_state(tmp_path)
        assert [Path(p).name for p in state.all_model_checkpoint_paths] == [
            "model-9",
            "model-10",
            "model-11",
        ]
        Run(tmp_path, monkeypatch, latest=1).save(12)
        assert steps(tmp_path) == [12]

    def test_what_was_to_stay_for_ever_does(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        Run(tmp_path, monkeypatch, latest=None).save(*range(4))
        Run(tmp_path, monkeypatch, latest=1).save(*range(4, 7))
        assert steps(tmp_path) == [0, 1, 2, 3, 6]

    def test_two_savers_of_one_process_count_for_themselves(self, tmp_path: Path) -> None:
        first, second = Run(tmp_path, latest=2), Run(tmp_path, latest=1)
        first.save(1, 2)
        second.save(11, 12)
        first.save(3)
        assert steps(tmp_path) == [2, 3, 12]

    def test_series_do_not_count_together_over_restarts(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        Run(tmp_path, monkeypatch, latest=2).save(1, 2, name="a")
        Run(tmp_path, monkeypatch, latest=1).save(1, 2, name="b")
        assert sorted(f.name for f in tmp_path.glob("*.h5")) == ["a-1.h5", "a-2.h5", "b-2.h5"]

    @pytest.mark.parametrize(
        ("name", "series"),
        [
            ("model", "model"),
            ("model-12", "model"),
            ("model.ckpt-7", "model.ckpt"),
            ("ckpt_3", "ckpt"),
            ("e10", "e"),
            ("7", ""),
            ("model-1.h5", "model.h5"),
        ],
    )
    def test_a_series_is_the_name_without_its_step(self, name: str, series: str) -> None:
        assert series_of(name) == series

    def test_one_name_again_and_again(self, tmp_path: Path) -> None:
        run = Run(tmp_path, latest=1)
        run.save(3, 3, 3)
        assert run.retention.latest[0][0] == f"{tmp_path}/model-3"
        assert steps(tmp_path) == [3]

    def test_the_only_good_one_is_never_deleted(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = Run(tmp_path, latest=1)
        run.save(0)

        def refuse(descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", refuse)
            with pytest.raises(CheckpointError, match="No space left"):
                run.save(1)
        assert latest_checkpoint(tmp_path) == f"{tmp_path}/model-0"
        run.save(2)
        assert steps(tmp_path) == [2]

    def test_files_that_the_record_does_not_name_stay(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_checkpoint(tmp_path / "model-100.h5", TENSORS)
        Run(tmp_path, monkeypatch, latest=1).save(7)
        (tmp_path / "model-7.h5").write_text("a user's own file under a listed name")
        Run(tmp_path, monkeypatch, latest=1).save(*range(8, 12))
        assert steps(tmp_path) == [7, 11, 100]

    def test_one_that_cannot_be_deleted_is_reported_and_tried_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        run = Run(tmp_path, latest=1)
        run.save(0)
        original = Path.unlink

        def refuse(self: Path, missing_ok: bool = False) -> None:
            if self.suffix == ".h5":
                raise PermissionError(13, "Permission denied")
            original(self, missing_ok=missing_ok)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "unlink", refuse)
            run.save(1)
        assert "could not delete the checkpoint" in caplog.text
        assert steps(tmp_path) == [0, 1]
        run.save(2)
        assert steps(tmp_path) == [2]

    def test_threads_may_write_at_once(self, tmp_path: Path) -> None:
        threads = [
            threading.Thread(target=Run(tmp_path, latest=2).save, args=range(start, start + 3))
            for start in (0, 100, 200)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert steps(tmp_path) == [1, 2, 101, 102, 201, 202]

    @pytest.mark.parametrize(
        ("policy", "error", "match"),
        [
            ({"latest": 0}, CheckpointError, "at least 1, or None to keep all, got 0"),
            ({"latest": -3}, CheckpointError, "at least 1, or None to keep all, got -3"),
            ({"hours": float("nan")}, AttributeValueError, "must be a number, got nan"),
            ({"best": -1}, CheckpointError, "keep_best must be at least 0, got -1"),
            ({"order": "max"}, AttributeValueError, "'lowest' or 'highest', got 'max'"),
        ],
    )
    def test_limits_that_make_no_sense(
        self, tmp_path: Path, policy: dict[str, Any], error: type[Exception], match: str
    ) -> None:
        with pytest.raises(error, match=match):
            Run(tmp_path, **policy)


class TestHours:
    def test_one_stays_for_each_time_that_passed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO, "headrace.train")
        now = [1_000_000.0]
        for module in (commit_module, retention_module):
            monkeypatch.setattr(module.time, "time", lambda: now[0])
        run = None
        for step in range(20):
            if step % 5 == 0:  # a restart, which must not begin the hours anew
                run = Run(tmp_path, monkeypatch, latest=2, hours=1.0)
            assert run is not None
            run.save(step)
            now[0] += 1200.0
        # Steps are 20 minutes apart, from 0 on: the first after each full hour stays.
        assert steps(tmp_path) == [4, 7, 10, 13, 16, 18, 19]
        assert caplog.text.count("one stays every 1 hours") == 5


class TestBest:
    METRICS = (5.0, 3.0, 4.0, float("nan"), 9.0, 2.0, 8.0, 7.0)

    @pytest.mark.parametrize("restarts", [False, True])
    @pytest.mark.parametrize(
        ("order", "best"), [("lowest", [5, 1]), ("highest", [4, 6])], ids=["lowest", "highest"]
    )
    def test_the_best_stay(
        self,
        order: str,
        best: list[int],
        restarts: bool,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        run = None
        for step, metric in enumerate(self.METRICS):
            if run is None or restarts:
                run = Run(tmp_path, monkeypatch, latest=1, best=2, order=order)
            run.save(step, metric=metric)
        assert run is not None
        assert steps(tmp_path) == sorted({*best, 7})
        assert [int(p.rpartition("-")[2]) for p, _ in run.retention.best] == best
        assert [m for _, m in run.retention.best] == [self.METRICS[step] for step in best]


class TestLatest:
    def test_nothing_there(self, tmp_path: Path) -> None:
        assert latest_checkpoint(tmp_path) is None
        assert latest_checkpoint(tmp_path / "nowhere") is None

    def test_is_the_one_written_last(self, tmp_path: Path) -> None:
        run = Run(tmp_path)
        run.save(0, 1, 2)
        assert latest_checkpoint(tmp_path) == f"{tmp_path}/model-2"
        # A restart from an earlier step: what counts is the order, not the number.
        run.save(1)
        assert latest_checkpoint(str(tmp_path)) == f"{tmp_path}/model-1"

    def test_damaged_ones_are_passed_over(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        Run(tmp_path).save(*range(5))
        damage(tmp_path / "model-4.h5")
        (tmp_path / "model-3.h5").write_bytes((tmp_path / "model-3.h5").read_bytes()[:900])
        (tmp_path / "model-2.h5").unlink()
        assert latest_checkpoint(tmp_path) == f"{tmp_path}/model-1"
        assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2
        assert "model-4.h5 is damaged" in caplog.text
        assert "model-3.h5 is truncated" in caplog.text

    def test_a_rewritten_name_counts_from_its_commit_on(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = Run(tmp_path)
        run.save(1, 2)

        def interrupt(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setitem(globals(), "write_checkpoint", interrupt)
            for step in (1, 3):
                with pytest.raises(KeyboardInterrupt):
                    run.save(step)
        assert latest_checkpoint(tmp_path) == f"{tmp_path}/model-2"
        record = json.loads((tmp_path / "checkpoint.json").read_text())
        assert [entry["name"] for entry in record["checkpoints"]] == ["model-1", "model-2"]
        run.save(1)
        assert latest_checkpoint(tmp_path) == f"{tmp_path}/model-1"

    def test_all_damaged(self, tmp_path: Path) -> None:
        Run(tmp_path).save(0, 1)
        for file in tmp_path.glob("*.h5"):
            damage(file)
        assert latest_checkpoint(tmp_path) is None

    def test_temporary_files_are_never_picked(self, tmp_path: Path) -> None:
        Run(tmp_path).save(0)
        sound = (tmp_path / "model-0.h5").read_bytes()
        (tmp_path / "model-0.h5").unlink()
        (tmp_path / f".model-1.h5.host.{os.getpid()}.0123abcd.tmp").write_bytes(sound)
        (tmp_path / "model-2.part-00000-of-00002.0123abcd.h5").write_bytes(sound)
        assert latest_checkpoint(tmp_path) is None

    @pytest.mark.parametrize(
        "content",
        [
            None,
            b"",
            b"{",
            b"model_checkpoint_path: 3",
            b'model_checkpoint_path: "a\\000b"',
            b'model_checkpoint_path: "' + b"x" * 300 + b'"',
            b"\xff\xfe",
            b'{"format": "other", "version": 1, "checkpoints": []}',
            b'{"format": "headrace-checkpoint-index", "version": 2, "checkpoints": []}',
            b'{"format": "headrace-checkpoint-index", "version": 1, "checkpoints": [3]}',
            b'{"format": "headrace-checkpoint-index", "version": 1, "checkpoints": ["../x"]}',
            b'{"format": "headrace-checkpoint-index", "version": 1, "checkpoints": ["\\ud800"]}',
            b'{"a": ' + b"[" * 5000,
        ],
        ids=range(13),
    )
    def test_files_are_looked_through_where_the_list_is_lost(
        self, tmp_path: Path, content: bytes | None
    ) -> None:
        Run(tmp_path).save(0, 1, 2)
        for age, step in enumerate((1, 0, 2)):
            os.utime(tmp_path / f"model-{step}.h5", ns=(0, 10**18 - age))
        (tmp_path / "notes.h5").write_text("not one of ours")
        if content is None:
            (tmp_path / "checkpoint").unlink()
        else:
            (tmp_path / "checkpoint").write_bytes(content)
        assert latest_checkpoint(tmp_path) == f"{tmp_path}/model-1"

    def test_a_folder_may_be_moved(self, tmp_path: Path) -> None:
        Run(tmp_path / "old").save(0, 1)
        (tmp_path / "old").rename(tmp_path / "new")
        assert latest_checkpoint(tmp_path / "new") == f"{tmp_path}/new/model-1"

    def test_a_folder_of_an_earlier_version(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for step in (1, 2):
            write_checkpoint(tmp_path / f"model-{step}.h5", TENSORS, step=step)
        listed = {
            "format": "headrace-checkpoint-index",
            "version": 1,
            "checkpoints": ["model-1.h5", "model-2.h5", "model-3.h5"],
        }
        (tmp_path / "checkpoint").write_text(json.dumps(listed))
        # The third was entered, and the process killed before it was written.
        assert latest_checkpoint(tmp_path) == f"{tmp_path}/model-2"
        assert read_checkpoint(tmp_path / "model-2")["x"][3] == 3
        Run(tmp_path, monkeypatch, latest=2).save(4)
        assert steps(tmp_path) == [2, 4]
        with CheckpointReader(latest_checkpoint(tmp_path) or "") as reader:
            assert reader.step == 4


class TestRunsThatWereKilled:
    class Killed(BaseException):
        """The end of a process, as far as what is written is concerned."""

    def kill(
        self, run: Run, name: str, step: int, patch: pytest.MonkeyPatch, *, named: bool
    ) -> None:
        """Save, and end before anything is written, or as soon as the state names it the latest."""
        prefix = f"{run.folder}/{name}"
        write_state = commit_module.write_state

        def write() -> None:
            if not named:
                raise self.Killed
            write_checkpoint(file_of(prefix), TENSORS, step=step)

        def end(*args: Any, **options: Any) -> None:
            write_state(*args, **options)
            raise self.Killed

        with patch.context() as inner, in_folder(prefix):
            inner.setattr(commit_module, "write_state", end)
            with pytest.raises(self.Killed):
                commit(run.retention, prefix, write)

    def test_one_after_the_other_leave_few_more(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        Run(tmp_path, monkeypatch, latest=3).save(1, 2, 3)
        for step in range(4, 12):
            run = Run(tmp_path, monkeypatch, latest=3)
            self.kill(run, f"model-{step}", step, monkeypatch, named=True)
            assert steps(tmp_path) == list(range(max(1, step - 4), step + 1))
        Run(tmp_path, monkeypatch, latest=3).save(20)
        assert steps(tmp_path) == [10, 11, 20]

    @pytest.mark.parametrize("latest", [1, 3])
    def test_the_latest_stays_where_the_record_has_it_at_an_old_place(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, latest: int
    ) -> None:
        first = Run(tmp_path, monkeypatch, latest=9)
        first.save(0, 1, 2, 3, 4, 5)
        # Written again and named as the latest, but not yet moved to the end of the record.
        again = Run(tmp_path, monkeypatch, latest=9)
        self.kill(again, "model-0", 6, monkeypatch, named=True)
        third = Run(tmp_path, monkeypatch, latest=latest)
        self.kill(third, "model-7", 7, monkeypatch, named=False)
        assert steps(tmp_path) == sorted([0, *range(5, 5 - latest, -1)])
        assert latest_checkpoint(tmp_path) == f"{tmp_path}/model-0"
        with CheckpointReader(f"{tmp_path}/model-0") as reader:
            assert reader.step == 6

    def test_a_state_that_cannot_be_read_changes_no_order(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        Run(tmp_path, monkeypatch, latest=9).save(1, 2, 3, 4)
        (tmp_path / "checkpoint").write_text("model_checkpoint_path: ''")
        Run(tmp_path, monkeypatch, latest=2).save(5)
        assert steps(tmp_path) == [4, 5]
