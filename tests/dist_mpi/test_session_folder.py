"""Jobs have a folder of their own, whatever killed jobs have left."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from headrace_mpi.launcher.session_folder import session_folder

SETTING = "PRTE_MCA_prte_tmpdir_base"


def test_a_folder_is_there_as_long_as_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SETTING, raising=False)
    with session_folder(elsewhere=False) as first, session_folder(elsewhere=False) as second:
        folders = [Path(first[SETTING]), Path(second[SETTING])]
        assert folders[0] != folders[1]
        assert all(folder.is_dir() for folder in folders)
        # What a launcher that was killed leaves.
        (folders[0] / "ompi.1" / "0").mkdir(parents=True)
    assert not any(folder.exists() for folder in folders)


def test_a_folder_that_was_chosen_stays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(SETTING, str(tmp_path))
    with session_folder(elsewhere=False) as found:
        assert found == {}
    assert tmp_path.is_dir()


def test_ranks_on_other_hosts_use_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SETTING, raising=False)
    with session_folder(elsewhere=True) as found:
        assert found == {}


def test_a_job_runs_where_no_folder_can_be_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(SETTING, raising=False)
    monkeypatch.setattr(tempfile, "tempdir", os.fspath(tmp_path / "nothing"))
    with session_folder(elsewhere=False) as found:
        assert found == {}
