"""A checkpoint in parts: one file for each task that holds variables, and one that lists them.

Each part is a checkpoint of its own with some of the tensors. The *manifest* takes the name of the
whole, and is written last: it lists the parts with their sizes and checksums, so that the
checkpoint is there once all of it is. It holds no tensors, but links to those of the parts, through
which h5py finds all tensors in the one file; our reader reads the list instead.

The names of parts hold a random word, so that those of an older checkpoint of the same name are
never touched before the new manifest stands.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headrace.errors import CheckpointError, CheckpointMismatchError, shown
from headrace_train.checkpoint.files import open_regular, sync_folder
from headrace_train.checkpoint.header import PartEntry, read_header
from headrace_train.checkpoint.paths import SUFFIX, file_of, find_file, is_regular
from headrace_train.checkpoint.reader import CheckpointReader, as_part
from headrace_train.checkpoint.writer import write_checkpoint

_PART = re.compile(r"(?P<name>.+)\.part-\d{5}-of-\d{5}\.[0-9a-f]{8}\.h5", re.DOTALL)
_TEMPORARY = re.compile(r".+_temp_[0-9a-f]{32}", re.DOTALL)


def is_part(name: str) -> bool:
    """Whether ``name`` is that of a part of a checkpoint."""
    return _PART.fullmatch(name) is not None


def merge_parts(
    parts: Sequence[str],
    prefix: str,
    *,
    step: int | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Make one checkpoint of several, which are moved beside it.

    Args:
        parts: Their prefixes, in a folder of the same file system.
        prefix: That of the whole.
        step: The global step.
        metadata: Anything else worth keeping, a JSON object.

    Raises:
        CheckpointError: if a part cannot be found or read, two have one tensor, or the files
            cannot be written; what was there before is untouched then.
    """
    target = file_of(prefix)
    word = secrets.token_hex(4)
    moved: dict[PartEntry, list[str]] = {}
    with parts_replaced(target), _put_back(target, moved):
        for number, part in enumerate(parts):
            name = f"{target.name.removesuffix(SUFFIX)}.part-{number:05d}-of-{len(parts):05d}"
            entry, names = _move(part, target.with_name(f"{name}.{word}{SUFFIX}"))
            moved[entry] = names
        _check_names(moved)
        sync_folder(target.parent)
        write_checkpoint(target, {}, step=step, metadata=metadata, parts=moved)


@contextlib.contextmanager
def parts_replaced(target: Path) -> Iterator[None]:
    """Delete the parts of the checkpoint that was there before, once another has its name."""
    before = part_files(target)
    yield
    for file in before:
        with contextlib.suppress(OSError):
            file.unlink(missing_ok=True)


@contextlib.contextmanager
def _put_back(target: Path, moved: Mapping[PartEntry, Sequence[str]]) -> Iterator[None]:
    """Delete the parts that were moved, where the manifest could not be written."""
    try:
        yield
    except BaseException as reason:
        for entry in moved:
            with contextlib.suppress(OSError):
                (target.parent / entry.file).unlink(missing_ok=True)
        if isinstance(reason, OSError):
            raise CheckpointError(
                f"the parts of the checkpoint {target} could not be put together: {reason}"
            ) from reason
        raise


def part_files(file: Path) -> list[Path]:
    """Return the parts that a manifest lists; none if ``file`` is no readable manifest."""
    if not is_regular(file):
        return []
    try:
        with open_regular(file) as stream:
            header = read_header(stream, file)
    except (OSError, CheckpointError):
        return []
    return [file.with_name(part.file) for part in header.parts if is_part(part.file)]


def remove_stale_parts(folder: Path, older_than_s: float) -> None:
    """Remove what killed processes left in ``folder``: parts without a manifest that lists them."""
    listed: dict[str, set[str]] = {}
    for file in folder.iterdir():
        with contextlib.suppress(OSError):
            if time.time() - file.lstat().st_mtime < older_than_s:
                continue
            if (found := _PART.fullmatch(file.name)) is not None:
                name = found["name"]
                if name not in listed:
                    manifest = folder / f"{name}{SUFFIX}"
                    listed[name] = {part.name for part in part_files(manifest)}
                if file.name not in listed[name] and is_regular(file):
                    file.unlink()
            elif _TEMPORARY.fullmatch(file.name) and file.is_dir() and not file.is_symlink():
                for part in file.iterdir():
                    if part.name.lstrip(".").startswith("part-"):
                        part.unlink()
                file.rmdir()


def _move(part: str, target: Path) -> tuple[PartEntry, list[str]]:
    source = find_file(part)
    if source is None:
        raise CheckpointError(
            f"the part {part} is not there: every task that holds variables writes one, so that "
            "all of them need the folder of the checkpoint; without a folder that all see, use "
            "Saver(sharded=False)"
        )
    with CheckpointReader(source) as reader:
        entry = as_part(reader, target.name)
        names = list(reader.tensors)
    source.rename(target)
    return entry, names


def _check_names(moved: Mapping[PartEntry, Sequence[str]]) -> None:
    seen: set[str] = set()
    for names in moved.values():
        for name in names:
            if name in seen:
                raise CheckpointMismatchError(f"two parts have the tensor {shown(name)}")
            seen.add(name)
