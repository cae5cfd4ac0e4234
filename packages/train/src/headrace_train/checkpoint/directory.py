"""A folder of checkpoints: which are there, which is the latest sound one, which may go.

The file ``checkpoint`` in the folder, JSON text, lists the checkpoints that were written there, the
latest last. A new checkpoint is entered before it is written, so that no crash leaves one that the
list does not know; a listed file that is not there is passed over. Only listed files are ever
deleted: what a user put beside them stays.
"""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from headrace.errors import CheckpointError
from headrace_train.checkpoint.files import is_temporary, locked, remove_stale, replaced
from headrace_train.checkpoint.header import MAGIC
from headrace_train.checkpoint.reader import CheckpointReader
from headrace_train.checkpoint.writer import write_checkpoint

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import ArrayLike

INDEX = "checkpoint"
_FORMAT = "headrace-checkpoint-index"
_VERSION = 1
_STEP = re.compile(r"-\d+(?=(\.[^.]*)?$)")
_log = logging.getLogger(__name__)


def latest_checkpoint(directory: str | Path) -> str | None:
    """Return the path of the latest checkpoint in a folder that is whole and sound.

    Every byte of it is verified. Damaged ones are passed over, with a warning in the log; where the
    list of the folder is lost or names no sound checkpoint, the files themselves are looked
    through, the most lately changed first.

    Args:
        directory: The folder.

    Returns:
        The path, or None if there is no sound checkpoint, or no such folder.
    """
    folder = Path(directory)
    if not folder.is_dir():
        return None
    for file in _candidates(folder):
        try:
            with CheckpointReader(file) as reader:
                reader.verify()
        except CheckpointError as reason:
            _log.warning("passed over a checkpoint: %s", reason)
        else:
            return str(file)
    return None


@final
class CheckpointDirectory:
    """A folder that checkpoints are written to, and old ones deleted from.

    Checkpoints whose names differ only in their step (``model-100.h5``, ``model-200.h5``) form a
    series; the limit is per series, and counts those that earlier processes wrote.

    Attributes:
        path: The folder.
        max_to_keep: How many of a series stay; None for all.
    """

    def __init__(self, path: str | Path, *, max_to_keep: int | None = 5) -> None:
        """Name a folder; it is made when the first checkpoint is written.

        Raises:
            CheckpointError: if ``max_to_keep`` is less than 1.
        """
        if max_to_keep is not None and max_to_keep < 1:
            raise CheckpointError(
                f"max_to_keep must be at least 1, or None to keep all, got {max_to_keep}"
            )
        self.path = Path(path)
        self.max_to_keep = max_to_keep

    def files(self) -> list[Path]:
        """Return the listed checkpoints that are there, sound or not, the latest last."""
        return [self.path / name for name in _read_index(self.path) if _is_ours(self.path / name)]

    def write(
        self,
        name: str,
        tensors: Mapping[str, ArrayLike],
        *,
        step: int | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Path:
        """Write a checkpoint, list it, and delete those of its series that exceed the limit.

        An old checkpoint is deleted only after the new one was read back, compared and committed.

        Args:
            name: Name of the file in the folder.
            tensors: Arrays by name.
            step: The global step.
            metadata: Anything else worth keeping, a JSON object.

        Returns:
            Path of the file.

        Raises:
            CheckpointError: if it cannot be written; nothing has been deleted then.
        """
        if not name or Path(name).name != name or name == INDEX or name.startswith("."):
            raise CheckpointError(
                f"{name!r} cannot be the name of a checkpoint: expected the name of a file in "
                f"{self.path}, other than {INDEX!r} and not starting with a dot"
            )
        file = self.path / name
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with locked(self.path):
                remove_stale(self.path)
                listed = _read_index(self.path)
                # Entries without a file are left from writes that failed or were interrupted.
                older = [n for n in listed if n != name and _is_ours(self.path / n)]
                # A name that is written again counts as the latest only once it is: until then
                # the file under it is an old one.
                if not file.exists():
                    _write_index(self.path, [*older, name])
                write_checkpoint(file, tensors, step=step, metadata=metadata)
                kept = self._delete_surplus(older, name)
                if [*kept, name] != _read_index(self.path):
                    _write_index(self.path, [*kept, name])
        except OSError as reason:
            raise CheckpointError(f"the checkpoint {file} could not be saved: {reason}") from reason
        return file

    def _delete_surplus(self, older: list[str], newest: str) -> list[str]:
        """Delete the earliest of the series of ``newest``; return those of ``older`` that stay."""
        if self.max_to_keep is None:
            return older
        series = [name for name in older if _series(name) == _series(newest)]
        surplus = set(series[: max(len(series) - (self.max_to_keep - 1), 0)])
        kept = []
        for name in older:
            if name not in surplus:
                kept.append(name)
                continue
            try:
                (self.path / name).unlink(missing_ok=True)
            except OSError as reason:
                _log.warning("could not delete the checkpoint %s: %s", self.path / name, reason)
                kept.append(name)
            else:
                _log.info(
                    "deleted the checkpoint %s, to keep the latest %d",
                    self.path / name,
                    self.max_to_keep,
                )
        return kept


def _series(name: str) -> str:
    return _STEP.sub("", name)


def _is_ours(file: Path) -> bool:
    """Whether ``file`` is there and begins like a checkpoint."""
    try:
        with file.open("rb") as stream:
            return stream.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def _candidates(folder: Path) -> Iterator[Path]:
    """Yield the checkpoints of a folder, the likeliest to be the latest first."""
    listed = _read_index(folder)
    yield from (folder / name for name in reversed(listed) if (folder / name).is_file())
    unlisted = [
        file
        for file in folder.iterdir()
        if file.name not in listed and not is_temporary(file.name) and _is_ours(file)
    ]
    yield from sorted(unlisted, key=_changed_ns, reverse=True)


def _changed_ns(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0


def _read_index(folder: Path) -> list[str]:
    """Return the names in the list of ``folder``; none if there is no list or it makes no sense."""
    try:
        content = json.loads((folder / INDEX).read_bytes())
        if content["format"] != _FORMAT or content["version"] != _VERSION:
            raise ValueError(f"it is of format {content['format']!r} {content['version']!r}")
        names = content["checkpoints"]
        # Names are deleted later: nothing outside the folder may be meant.
        if not all(isinstance(name, str) and Path(name).name == name for name in names):
            raise ValueError("it lists what is no name of a file")
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as reason:
        _log.warning("passed over the list of checkpoints %s: %r", folder / INDEX, reason)
        return []
    return list(dict.fromkeys(names))


def _write_index(folder: Path, names: list[str]) -> None:
    content = {"format": _FORMAT, "version": _VERSION, "checkpoints": names}
    with replaced(folder / INDEX) as temporary:
        temporary.write_text(json.dumps(content, indent=1) + "\n")
