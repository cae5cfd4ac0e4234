"""A folder of checkpoints: the latest sound one is found, surplus ones go, nothing else does."""

from __future__ import annotations

import json
import logging
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from headrace.errors import CheckpointError
from headrace_train.checkpoint import (
    CheckpointDirectory,
    latest_checkpoint,
    read_checkpoint,
    write_checkpoint,
)

TENSORS = {"x": np.arange(100.0)}


def fill(path: Path, steps: range, max_to_keep: int | None = 5, name: str = "model") -> None:
    directory = CheckpointDirectory(path, max_to_keep=max_to_keep)
    for step in steps:
        directory.write(f"{name}-{step}.h5", TENSORS, step=step)


def names(path: Path) -> list[str]:
    return [file.name for file in CheckpointDirectory(path).files()]


def damage(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-300] ^= 1
    file.write_bytes(content)


class TestLatest:
    def test_nothing_there(self, tmp_path: Path) -> None:
        assert latest_checkpoint(tmp_path) is None
        assert latest_checkpoint(tmp_path / "nowhere") is None

    def test_is_the_one_written_last(self, tmp_path: Path) -> None:
        fill(tmp_path, range(3))
        assert latest_checkpoint(tmp_path) == str(tmp_path / "model-2.h5")
        # A restart from an earlier step: what counts is the order, not the number.
        fill(tmp_path, range(1, 2))
        assert latest_checkpoint(str(tmp_path)) == str(tmp_path / "model-1.h5")

    def test_damaged_ones_are_passed_over(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        fill(tmp_path, range(5))
        damage(tmp_path / "model-4.h5")
        (tmp_path / "model-3.h5").write_bytes((tmp_path / "model-3.h5").read_bytes()[:900])
        (tmp_path / "model-2.h5").unlink()
        assert latest_checkpoint(tmp_path) == str(tmp_path / "model-1.h5")
        assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2
        assert "model-4.h5 is damaged" in caplog.text
        assert "model-3.h5 is truncated" in caplog.text

    def test_a_rewritten_name_counts_from_its_commit_on(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        directory = CheckpointDirectory(tmp_path)
        for name in ("a.h5", "b.h5"):
            directory.write(name, TENSORS)

        def interrupt(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr("headrace_train.checkpoint.directory.write_checkpoint", interrupt)
            with pytest.raises(KeyboardInterrupt):
                directory.write("a.h5", TENSORS)
        assert latest_checkpoint(tmp_path) == str(tmp_path / "b.h5")
        directory.write("a.h5", TENSORS)
        assert latest_checkpoint(tmp_path) == str(tmp_path / "a.h5")

    def test_all_damaged(self, tmp_path: Path) -> None:
        fill(tmp_path, range(2))
        for file in tmp_path.glob("*.h5"):
            damage(file)
        assert latest_checkpoint(tmp_path) is None

    def test_temporary_files_are_never_picked(self, tmp_path: Path) -> None:
        fill(tmp_path, range(1))
        sound = (tmp_path / "model-0.h5").read_bytes()
        (tmp_path / "model-0.h5").unlink()
        (tmp_path / f".model-1.h5.host.{os.getpid()}.0123abcd.tmp").write_bytes(sound)
        assert latest_checkpoint(tmp_path) is None

    @pytest.mark.parametrize(
        "content",
        [
            None,
            "",
            "{",
            "[]",
            '{"format": "other", "version": 1, "checkpoints": []}',
            '{"format": "headrace-checkpoint-index", "version": 2, "checkpoints": []}',
            '{"format": "headrace-checkpoint-index", "version": 1, "checkpoints": [3]}',
            '{"format": "headrace-checkpoint-index", "version": 1, "checkpoints": ["../x"]}',
            "[" * 5000,
        ],
    )
    def test_files_are_looked_through_where_the_list_is_lost(
        self, tmp_path: Path, content: str | None
    ) -> None:
        fill(tmp_path, range(3))
        for age, step in enumerate((1, 0, 2)):
            os.utime(tmp_path / f"model-{step}.h5", ns=(0, 10**18 - age))
        (tmp_path / "notes.h5").write_text("not one of ours")
        if content is None:
            (tmp_path / "checkpoint").unlink()
        else:
            (tmp_path / "checkpoint").write_text(content)
        assert latest_checkpoint(tmp_path) == str(tmp_path / "model-1.h5")

    def test_a_folder_may_be_moved(self, tmp_path: Path) -> None:
        fill(tmp_path / "old", range(2))
        (tmp_path / "old").rename(tmp_path / "new")
        assert latest_checkpoint(tmp_path / "new") == str(tmp_path / "new" / "model-1.h5")


class TestRetention:
    def test_keeps_the_latest(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO)
        fill(tmp_path, range(5), max_to_keep=3)
        assert names(tmp_path) == ["model-2.h5", "model-3.h5", "model-4.h5"]
        assert sorted(file.name for file in tmp_path.iterdir()) == ["checkpoint", *names(tmp_path)]
        messages = [record.getMessage() for record in caplog.records]
        assert messages == [
            f"deleted the checkpoint {tmp_path / f'model-{step}.h5'}, to keep the latest 3"
            for step in (0, 1)
        ]

    def test_counts_what_an_earlier_process_wrote(self, tmp_path: Path) -> None:
        for step in range(0, 12, 2):
            fill(tmp_path, range(step, step + 2), max_to_keep=3)
        assert names(tmp_path) == ["model-9.h5", "model-10.h5", "model-11.h5"]
        fill(tmp_path, range(12, 13), max_to_keep=1)
        assert names(tmp_path) == ["model-12.h5"]

    def test_none_keeps_all(self, tmp_path: Path) -> None:
        fill(tmp_path, range(8), max_to_keep=None)
        assert len(names(tmp_path)) == 8

    def test_series_do_not_count_together(self, tmp_path: Path) -> None:
        fill(tmp_path, range(3), max_to_keep=2, name="a")
        fill(tmp_path, range(3), max_to_keep=1, name="b")
        assert names(tmp_path) == ["a-1.h5", "a-2.h5", "b-2.h5"]

    def test_one_name_written_again_and_again(self, tmp_path: Path) -> None:
        directory = CheckpointDirectory(tmp_path, max_to_keep=1)
        for value in range(3):
            file = directory.write("model.h5", {"x": np.array(value)})
        assert read_checkpoint(file)["x"] == 2
        assert names(tmp_path) == ["model.h5"]

    def test_the_only_good_one_is_never_deleted(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fill(tmp_path, range(1), max_to_keep=1)

        def refuse(descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", refuse)
            with pytest.raises(CheckpointError, match="No space left"):
                fill(tmp_path, range(1, 2), max_to_keep=1)
        assert latest_checkpoint(tmp_path) == str(tmp_path / "model-0.h5")

        with (
            monkeypatch.context() as patch,
            pytest.raises(CheckpointError, match="1 of 1 tensors cannot be stored"),
        ):
            CheckpointDirectory(tmp_path, max_to_keep=1).write("model-1.h5", {"": np.zeros(1)})
        assert latest_checkpoint(tmp_path) == str(tmp_path / "model-0.h5")
        fill(tmp_path, range(2, 3), max_to_keep=1)
        assert names(tmp_path) == ["model-2.h5"]

    def test_files_that_the_list_does_not_name_stay(self, tmp_path: Path) -> None:
        write_checkpoint(tmp_path / "model-100.h5", TENSORS)
        (tmp_path / "model-7.h5").write_text("a user's own file under a listed name")
        content = {"format": "headrace-checkpoint-index", "version": 1}
        listed = {**content, "checkpoints": ["model-7.h5"]}
        (tmp_path / "checkpoint").write_text(json.dumps(listed))
        fill(tmp_path, range(8, 12), max_to_keep=1)
        assert sorted(file.name for file in tmp_path.glob("*.h5")) == [
            "model-100.h5",
            "model-11.h5",
            "model-7.h5",
        ]

    def test_one_that_cannot_be_deleted_is_reported_and_tried_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        fill(tmp_path, range(1), max_to_keep=1)
        original = Path.unlink

        def refuse(self: Path, missing_ok: bool = False) -> None:
            if self.suffix == ".h5":
                raise PermissionError(13, "Permission denied")
            original(self, missing_ok=missing_ok)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "unlink", refuse)
            fill(tmp_path, range(1, 2), max_to_keep=1)
        assert "could not delete the checkpoint" in caplog.text
        assert names(tmp_path) == ["model-0.h5", "model-1.h5"]
        fill(tmp_path, range(2, 3), max_to_keep=1)
        assert names(tmp_path) == ["model-2.h5"]

    def test_threads_may_write_at_once(self, tmp_path: Path) -> None:
        threads = [
            threading.Thread(target=fill, args=(tmp_path, range(start, start + 5), 4))
            for start in (0, 100, 200)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(names(tmp_path)) == 4
        assert len(list(tmp_path.iterdir())) == 5

    def test_makes_the_folder(self, tmp_path: Path) -> None:
        fill(tmp_path / "runs" / "1", range(1))
        assert names(tmp_path / "runs" / "1") == ["model-0.h5"]

    @pytest.mark.parametrize("name", ["", "a/b.h5", "..", "checkpoint", ".hidden"])
    def test_refuses_names_that_are_none(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(CheckpointError, match="cannot be the name of a checkpoint"):
            CheckpointDirectory(tmp_path).write(name, TENSORS)

    @pytest.mark.parametrize("limit", [0, -3])
    def test_refuses_to_keep_none(self, tmp_path: Path, limit: int) -> None:
        with pytest.raises(CheckpointError, match=f"at least 1, or None to keep all, got {limit}"):
            CheckpointDirectory(tmp_path, max_to_keep=limit)

    def test_a_folder_that_cannot_be_made(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(CheckpointError, match="could not be saved"):
            CheckpointDirectory(tmp_path / "file").write("a.h5", TENSORS)
