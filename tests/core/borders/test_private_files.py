"""Code on disk: only what nobody else can have written is read, and run."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.extend.files import SharedFileError, check_private, read_private, write_private

ROOT = os.geteuid() == 0


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o022, 0o077, 0o777])
def test_what_is_written_is_the_users_alone(tmp_path: Path, umask: int) -> None:
    place = tmp_path / "base" / "cpu" / "a.kernel"
    if umask == 0o777:
        umask = 0o027
    before = os.umask(umask)
    try:
        write_private(place, b"code")
    finally:
        os.umask(before)
    assert read_private(place) == b"code"
    assert [mode(p) for p in (place, place.parent, place.parent.parent)] == [0o600, 0o700, 0o700]
    write_private(place, b"other code")
    assert read_private(place) == b"other code"
    assert [p.name for p in place.parent.iterdir()] == ["a.kernel"]


def _mode(bits: int) -> Callable[[Path], None]:
    return lambda path: path.chmod(bits)


def _foreign(path: Path) -> None:
    os.chown(path, 12345, 12345)


FILES: dict[str, Callable[[Path], None]] = {
    "group-writable": _mode(0o660),
    "world-writable": _mode(0o606),
    "both": _mode(0o666),
    "sticky and world-writable": _mode(0o1777),
    "group-writable, set-gid": _mode(0o2770),
    "set-uid and world-writable": _mode(0o4702),
}


@pytest.mark.parametrize("name", sorted(FILES))
def test_files_that_others_may_have_written_are_refused(tmp_path: Path, name: str) -> None:
    place = tmp_path / "cpu" / "a.kernel"
    write_private(place, b"code")
    FILES[name](place)
    with pytest.raises(SharedFileError, match=r"may be written by others \(mode \d+\)"):
        read_private(place)
    write_private(place, b"compiled anew")
    assert read_private(place) == b"compiled anew"


@pytest.mark.parametrize("name", sorted(FILES))
@pytest.mark.parametrize("above", [0, 1])
def test_folders_that_others_may_write_are_refused(tmp_path: Path, name: str, above: int) -> None:
    place = tmp_path / "base" / "cpu" / "a.kernel"
    write_private(place, b"code")
    folder = place.parents[above]
    FILES[name](folder)
    if above and mode(folder) & stat.S_ISVTX:
        # As /tmp: others may add, and cannot rename what is not theirs.
        assert read_private(place) == b"code"
        return
    for touch in (lambda: read_private(place), lambda: write_private(place, b"x")):
        with pytest.raises(SharedFileError, match=f"{folder.name} may be written by others"):
            touch()
    folder.chmod(0o700)
    assert read_private(place) == b"code"


@pytest.mark.skipif(not ROOT, reason="only root gives files away")
@pytest.mark.parametrize("which", [None, 0, 1])
def test_what_belongs_to_another_user_is_refused(tmp_path: Path, which: int | None) -> None:
    place = tmp_path / "base" / "cpu" / "a.kernel"
    write_private(place, b"code")
    _foreign(place if which is None else place.parents[which])
    with pytest.raises(SharedFileError, match=r"belongs to another user \(uid 12345\)"):
        read_private(place)


def _link(path: Path) -> None:
    other = path.with_name("other")
    path.rename(other)
    path.symlink_to(other)


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path)


def _device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("put", [_link, _pipe, _folder, _loop, _device])
def test_what_is_no_file_is_refused_without_waiting(
    tmp_path: Path, put: Callable[[Path], None]
) -> None:
    place = tmp_path / "cpu" / "a.kernel"
    write_private(place, b"code")
    put(place)
    with pytest.raises(OSError, match=r"no regular file|symbolic link|Is a directory"):
        read_private(place)


def test_a_folder_that_is_not_there_is_told_as_that(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        check_private(tmp_path / "none")
