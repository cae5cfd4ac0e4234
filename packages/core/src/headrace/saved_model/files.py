"""Files of saved models: written in full or not at all, and never looked for elsewhere."""

from __future__ import annotations

import os
import secrets
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, final

from headrace.errors import SavedModelDamagedError, SavedModelError

_BLOCK = 1 << 20


@final
@dataclass(frozen=True, slots=True)
class FileRecord:
    """What a file must be like: its size and checksum."""

    bytes: int
    crc32: int


def write_file(path: Path, write: Callable[[BinaryIO], None]) -> FileRecord:
    """Write a file beside its place, and put it there when it is on the disk.

    Args:
        path: The file; its folder is made where it is missing.
        write: Writes the content.

    Raises:
        SavedModelError: if it cannot be written; nothing has changed then.
    """
    temporary = path.with_name(f".{path.name[:100]}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("xb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            record = record_of(temporary)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        _sync(path.parent)
    except OSError as error:
        raise SavedModelError(f"cannot write {path}: {error.strerror or error}") from error
    return record


def copy_file(source: Path, path: Path) -> FileRecord:
    """Copy a file into a saved model.

    Raises:
        SavedModelError: if it cannot be read or written.
    """

    def write(file: BinaryIO) -> None:
        with source.open("rb") as found:
            while block := found.read(_BLOCK):
                file.write(block)

    return write_file(path, write)


def record_of(path: Path) -> FileRecord:
    """Return size and checksum of a file."""
    size = crc = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            size += len(block)
            crc = zlib.crc32(block, crc)
    return FileRecord(size, crc)


def found_inside(folder: Path, name: str) -> Path:
    """Return a file of a folder, which may lie nowhere else.

    Raises:
        SavedModelDamagedError: if the name leads out of the folder, also over a link.
    """
    path = folder / name
    try:
        inside = path.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):
        inside = False
    if not inside or ".." in Path(name).parts or Path(name).is_absolute():
        raise SavedModelDamagedError(
            f"the saved model in {folder} names the file {name[:80]!r} outside of its folder, "
            "which is refused"
        )
    return path


def check_file(folder: Path, name: str, record: FileRecord, *, content: bool = True) -> Path:
    """Return a file of a saved model that is as it was written.

    Args:
        folder: The folder of the model.
        name: The file, relative to it.
        record: What it must be like.
        content: Whether the checksum is compared, too, besides the size.

    Raises:
        SavedModelDamagedError: if it is missing, cut short or changed.
    """
    path = found_inside(folder, name)
    try:
        size = path.stat().st_size
        if size != record.bytes:
            raise SavedModelDamagedError(
                f"{path} has {size} bytes, it was written with {record.bytes}; export the model "
                "again, or copy all of its folder"
            )
        if content and record_of(path).crc32 != record.crc32:
            raise SavedModelDamagedError(
                f"{path} is damaged: its checksum is not that with which it was written"
            )
    except FileNotFoundError:
        raise SavedModelDamagedError(
            f"{path} is missing; export the model again, or copy all of its folder"
        ) from None
    except OSError as error:
        if isinstance(error, SavedModelDamagedError):
            raise
        raise SavedModelDamagedError(f"cannot read {path}: {error.strerror or error}") from error
    return path


def _sync(folder: Path) -> None:
    """Let the names in a folder be on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
