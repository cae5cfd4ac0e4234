"""The file ``checkpoint`` of a folder, which says which checkpoint is the latest one.

It has TensorFlow's form, a ``CheckpointState`` as text, so that programs of either find what those
of the other wrote. The list that earlier versions of this package wrote there is read, too.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from headrace.errors import (
    ArgumentTypeError,
    CheckpointDamagedError,
    CheckpointError,
    CheckpointMismatchError,
    CheckpointNotFoundError,
    FailedPreconditionError,
    shown,
    told,
)
from headrace.extend.arguments import items, real
from headrace_io import protos
from headrace_train.checkpoint.files import is_temporary, open_regular, replaced
from headrace_train.checkpoint.header import MAGIC
from headrace_train.checkpoint.manifest import is_part
from headrace_train.checkpoint.opening import find_checkpoint, open_checkpoint
from headrace_train.checkpoint.paths import (
    check_path,
    file_of,
    is_absolute,
    join,
    prefix_of,
    split,
)
from headrace_train.checkpoint.record import record_file

DEFAULT_NAME = "checkpoint"
_MOST_BYTES = 1 << 26
# Each is looked for in its folder.
_MOST_PATHS = 1 << 16
_OLD_FORMAT = "headrace-checkpoint-index"
_log = logging.getLogger("headrace.train")


def latest_checkpoint(checkpoint_dir: str | Path, latest_filename: str | None = None) -> str | None:
    """Return the latest checkpoint in a folder that is whole and sound.

    Every byte of it is verified. Damaged ones are passed over, with a warning in the log; where
    what the folder says of itself is lost or names no sound checkpoint, the files themselves are
    looked through, the most lately changed first.

    Args:
        checkpoint_dir: The folder.
        latest_filename: The name of the file that tells; ``checkpoint`` if None.

    Returns:
        What ``restore`` takes, or None if there is no sound checkpoint, or no such folder.
    """
    folder = _folder(checkpoint_dir)
    for prefix in _candidates(folder, latest_filename):
        try:
            with open_checkpoint(prefix) as reader:
                reader.verify()
        except CheckpointError as reason:
            _log.warning("passed over a checkpoint: %s", reason)
        else:
            return prefix
    return None


def get_checkpoint_state(checkpoint_dir: str | Path, latest_filename: str | None = None) -> Any:
    """Return what a folder says of its checkpoints.

    Args:
        checkpoint_dir: The folder.
        latest_filename: The name of the file that tells; ``checkpoint`` if None.

    Returns:
        A ``CheckpointState`` with ``model_checkpoint_path``, ``all_model_checkpoint_paths`` and
        ``all_model_checkpoint_timestamps``, its paths with the folder put before where they are
        relative. None if the folder has none that can be read.

    Raises:
        CheckpointError: if it names no latest checkpoint.
    """
    folder = _folder(checkpoint_dir)
    file = state_file(folder, latest_filename)
    try:
        with open_regular(file) as stream:
            text = stream.read(_MOST_BYTES)
        state = _old_list(text) if text.lstrip().startswith(b"{") else _parsed(text)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as reason:
        _log.warning("%s: Checkpoint ignored: %s", file, reason)
        return None
    if not state.model_checkpoint_path:
        raise CheckpointDamagedError(f"Invalid checkpoint state loaded from {file}")
    return _usable(state, folder, file)


def generate_checkpoint_state_proto(
    save_dir: str | Path,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> Any:
    """Return a ``CheckpointState``.

    Args:
        save_dir: The folder; where it is a relative path, relative paths of checkpoints are made
            relative to it.
        model_checkpoint_path: The latest checkpoint.
        all_model_checkpoint_paths: All that are still there, the latest last; that one is added
            where it is missing.
        all_model_checkpoint_timestamps: When each was written, in seconds since 1970.
        last_preserved_timestamp: When the last one was written that stays because of its time.

    Raises:
        ArgumentTypeError: if a path is no string.
        CheckpointError: if there are not as many times as paths, or a path is none.
    """
    folder = os.fspath(save_dir)
    latest, paths = (
        model_checkpoint_path,
        (
            items(all_model_checkpoint_paths, "all_model_checkpoint_paths")
            if all_model_checkpoint_paths
            else []
        ),
    )
    for path in (latest, *paths):
        check_path(path, "a path of a checkpoint")
        if not path:
            raise CheckpointMismatchError("a path of a checkpoint is empty")
    if not paths or paths[-1] != latest:
        _log.info("%s is not in all_model_checkpoint_paths. Manually adding it.", latest)
        paths.append(latest)
    times = (
        items(all_model_checkpoint_timestamps, "all_model_checkpoint_timestamps")
        if all_model_checkpoint_timestamps
        else []
    )
    if times and len(times) != len(paths):
        raise CheckpointMismatchError(
            "Checkpoint timestamps, if provided, must match checkpoint paths (got paths "
            f"{told(paths)} and timestamps {told(times)})"
        )
    times = [real(time, "a time of a checkpoint") for time in times]
    if last_preserved_timestamp is not None:
        last_preserved_timestamp = real(last_preserved_timestamp, "last_preserved_timestamp")
    if not is_absolute(folder):
        start = folder or os.curdir
        latest, *paths = (
            path if is_absolute(path) else os.path.relpath(path, start) for path in (latest, *paths)
        )
    return protos.CheckpointState(
        model_checkpoint_path=latest,
        all_model_checkpoint_paths=paths,
        all_model_checkpoint_timestamps=times,
        last_preserved_timestamp=last_preserved_timestamp,
    )


def update_checkpoint_state(
    save_dir: str | Path,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    latest_filename: str | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> None:
    """Write which checkpoint of a folder is the latest one.

    Args:
        save_dir: The folder.
        model_checkpoint_path: The latest checkpoint.
        all_model_checkpoint_paths: All that are still there, the latest last.
        latest_filename: The name of the file; ``checkpoint`` if None.
        all_model_checkpoint_timestamps: When each was written, in seconds since 1970.
        last_preserved_timestamp: When the last one was written that stays because of its time.

    Raises:
        CheckpointError: if a path is none, or the file cannot be written.
        FailedPreconditionError: if the checkpoint has the name of the file itself.
    """
    write_state(
        save_dir,
        model_checkpoint_path,
        all_model_checkpoint_paths,
        latest_filename,
        all_model_checkpoint_timestamps=all_model_checkpoint_timestamps,
        last_preserved_timestamp=last_preserved_timestamp,
    )


def write_state(
    save_dir: str | Path,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    latest_filename: str | None = None,
    *,
    relative: bool = False,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> None:
    """Do as ``update_checkpoint_state``, with ``relative`` paths that let the folder be moved."""
    folder = os.fspath(save_dir)
    paths = (
        items(all_model_checkpoint_paths, "all_model_checkpoint_paths")
        if all_model_checkpoint_paths
        else []
    )
    for path in (model_checkpoint_path, *paths):
        check_path(path, "the path of a checkpoint")
    latest = model_checkpoint_path
    if relative:
        latest, *paths = (
            os.path.relpath(path, folder or os.curdir) if is_absolute(path) else path
            for path in (latest, *paths)
        )
    state = generate_checkpoint_state_proto(
        folder, latest, paths, all_model_checkpoint_timestamps, last_preserved_timestamp
    )
    file = state_file(Path(folder), latest_filename)
    if str(file) == state.model_checkpoint_path:
        raise FailedPreconditionError(
            f"Save path '{model_checkpoint_path}' conflicts with path used for checkpoint state.  "
            "Please use a different save path."
        )
    # lazy: protobuf is for programs that make messages
    from google.protobuf import text_format

    try:
        with replaced(file) as temporary:
            temporary.write_text(text_format.MessageToString(state), "utf-8")
    except OSError as reason:
        missing = isinstance(reason, FileNotFoundError)
        kind = CheckpointNotFoundError if missing else CheckpointError
        raise kind(f"{file} could not be written: {reason}") from reason


def state_file(folder: Path, latest_filename: str | None) -> Path:
    """Return the file that tells which checkpoint is the latest one.

    Raises:
        CheckpointError: if there can be none of this name.
    """
    name = DEFAULT_NAME if latest_filename is None else latest_filename
    if not isinstance(name, str):
        raise ArgumentTypeError(f"latest_filename must be a string, got {shown(name)}")
    check_path(name, "latest_filename")
    if split(name)[0]:
        raise CheckpointMismatchError(
            f"'latest_filename' must not contain path components, got {shown(name)}"
        )
    return folder / name


def is_ours(file: Path) -> bool:
    """Whether ``file`` is there and begins like a checkpoint."""
    try:
        with open_regular(file) as stream:
            return stream.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError):
        return False


def _folder(checkpoint_dir: Any) -> Path:
    try:
        text = os.fspath(checkpoint_dir)
    except TypeError:
        raise ArgumentTypeError(
            f"checkpoint_dir must be the path of a folder, got {shown(checkpoint_dir)}"
        ) from None
    text = os.fsdecode(text) if isinstance(text, bytes) else text
    check_path(text, "checkpoint_dir")
    return Path(text)


def _parsed(text: bytes) -> Any:
    # lazy: protobuf is for programs that make messages
    from google.protobuf import text_format

    try:
        return text_format.Parse(text.decode(), protos.CheckpointState())
    except text_format.ParseError as reason:
        raise ValueError(f"it is no CheckpointState: {reason}") from reason


def earlier_list(folder: Path, latest_filename: str | None) -> list[tuple[str, float]]:
    """Return what an earlier version of this package listed in a folder, each with its time."""
    try:
        with open_regular(state_file(folder, latest_filename)) as stream:
            text = stream.read(_MOST_BYTES)
        if not text.lstrip().startswith(b"{"):
            return []
        names = list(_old_list(text).all_model_checkpoint_paths)
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return []
    found = [(name, find_checkpoint(join(str(folder), name))) for name in names]
    return [(name, _changed_ns(file) / 1e9) for name, file in found if file is not None]


def _old_list(text: bytes) -> Any:
    """Return the state that a list of earlier versions of this package stands for.

    Raises:
        ValueError, TypeError, KeyError: if it is none.
    """
    content = json.loads(text)
    if content["format"] != _OLD_FORMAT or content["version"] != 1:
        raise ValueError(f"it is of format {content['format']!r} {content['version']!r}")
    names = content["checkpoints"]
    if not all(isinstance(name, str) and Path(name).name == name for name in names):
        raise ValueError("it lists what is no name of a file")
    paths = [prefix_of(name) for name in dict.fromkeys(names)]
    # An entry was made before its file: what is not there was never written.
    return protos.CheckpointState(
        model_checkpoint_path=paths[-1] if paths else "", all_model_checkpoint_paths=paths
    )


def _usable(state: Any, folder: Path, file: Path) -> Any:
    """Return a state with paths that start with the folder, without those that no file can have."""
    latest = _placed(state.model_checkpoint_path, folder, file)
    paths, times = [], []
    listed = list(state.all_model_checkpoint_timestamps)
    timed = len(listed) == len(state.all_model_checkpoint_paths)
    for number, path in enumerate(state.all_model_checkpoint_paths):
        placed = _placed(path, folder, file)
        if placed is not None:
            paths.append(placed)
            times += listed[number : number + 1] if timed else []
    latest = latest or (paths[-1] if paths else None)
    if latest is None:
        return None
    del state.all_model_checkpoint_paths[:], state.all_model_checkpoint_timestamps[:]
    state.model_checkpoint_path = latest
    state.all_model_checkpoint_paths.extend(paths)
    state.all_model_checkpoint_timestamps.extend(times)
    return state


def _placed(path: str, folder: Path, file: Path) -> str | None:
    try:
        check_path(path, "a path")
    except CheckpointError as reason:
        _log.warning("passed over a path that %s lists: %s", file, reason)
        return None
    return path if is_absolute(path) else join(str(folder), path)


def _candidates(folder: Path, latest_filename: str | None) -> Iterator[str]:
    """Yield the checkpoints of a folder, the likeliest to be the latest first."""
    try:
        state = get_checkpoint_state(folder, latest_filename)
    except CheckpointError as reason:
        _log.warning("%s", reason)
        state = None
    seen = set()
    listed = []
    if state is not None:
        listed = [state.model_checkpoint_path, *reversed(state.all_model_checkpoint_paths)]
    for path in listed:
        # The folder may have been moved.
        for place in (path, join(str(folder), split(path)[1])):
            if place not in seen and find_checkpoint(place) is not None:
                seen.add(place)
                yield place
    files = (state_file(folder, latest_filename), record_file(folder, latest_filename))
    if not any(os.path.lexists(file) for file in files):
        # No saver keeps account of this folder.
        return
    yield from (place for place in _unlisted(folder) if place not in seen)


def _unlisted(folder: Path) -> list[str]:
    try:
        names = list(folder.iterdir())
    except OSError:
        return []
    files = [
        file
        for file in names
        if not is_temporary(file.name) and not is_part(file.name) and is_ours(file)
    ]
    return [_named(file) for file in sorted(files, key=_changed_ns, reverse=True)]


def _named(file: Path) -> str:
    prefix = prefix_of(file)
    return prefix if file_of(prefix) == file else str(file)


def _changed_ns(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0


def checkpoint_exists(checkpoint_prefix: str) -> bool:
    """Return whether there is a checkpoint of a prefix.

    Args:
        checkpoint_prefix: What ``Saver.save`` returned.
    """
    return find_checkpoint(checkpoint_prefix) is not None


def get_checkpoint_mtimes(checkpoint_prefixes: Sequence[str]) -> list[float]:
    """Return when checkpoints were written, in seconds since 1970; those not there are left out.

    Args:
        checkpoint_prefixes: What ``Saver.save`` returned.
    """
    found = [
        find_checkpoint(prefix)
        for prefix in items(checkpoint_prefixes, "checkpoint_prefixes", _MOST_PATHS)
    ]
    return [file.stat().st_mtime for file in found if file is not None]
