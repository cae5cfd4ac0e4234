"""Reading a checkpoint: its list without loading it, its tensors with their checksums verified."""

from __future__ import annotations

import difflib
import types
import zlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, final

from headrace.errors import (
    CheckpointDamagedError,
    CheckpointError,
    CheckpointNotFoundError,
    listing,
    shorten,
    shown,
)
from headrace.extend.arguments import items
from headrace_train.checkpoint.encoding import dataset_paths, decode, stored_dtype
from headrace_train.checkpoint.files import open_regular
from headrace_train.checkpoint.header import (
    Header,
    PartEntry,
    TensorEntry,
    lists_parts,
    read_header,
)
from headrace_train.checkpoint.paths import existing_file
from headrace_train.checkpoint.strings import read_strings

if TYPE_CHECKING:
    import io
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

_PIECE_BYTES = 1 << 20


@final
class CheckpointReader:
    """An open checkpoint.

    Opening reads and checks the header only. Use as a context manager, or call ``close``.

    Attributes:
        path: The file.
        tensors: What it holds, by name, in the order in which it was written.
        step: The global step, where one was given.
        metadata: What else the writer kept.
        producers: Versions of what wrote the file.
    """

    def __init__(self, path: str | Path) -> None:
        """Open a checkpoint.

        Args:
            path: What ``Saver.save`` returned, or the file.

        Raises:
            CheckpointError: if there is none, or it is not a whole and sound one of ours.
        """
        self.path = existing_file(path)
        self._hdf5: Any = None
        self._checked = False
        self._parts: list[CheckpointReader] = []
        try:
            self._stream = open_regular(self.path)
        except FileNotFoundError as reason:
            raise CheckpointNotFoundError(f"there is no checkpoint {self.path}") from reason
        except OSError as reason:
            raise CheckpointError(f"{self.path} cannot be read: {reason}") from reason
        try:
            self._header = read_header(self._stream, self.path)
            self._open_parts()
        except OSError as reason:
            self.close()
            raise CheckpointError(f"{self.path} cannot be read: {reason}") from reason
        except BaseException:
            self.close()
            raise
        entries = [*self._header.tensors, *(e for p in self._parts for e in p.tensors.values())]
        self.tensors: Mapping[str, TensorEntry] = types.MappingProxyType(
            {entry.name: entry for entry in entries}
        )
        self.step = self._header.step
        self.metadata = self._header.metadata
        self.producers = self._header.producers
        self._paths = dataset_paths([entry.name for entry in self._header.tensors])

    @property
    def files(self) -> list[Path]:
        """The files of the checkpoint: one, or that of the manifest and then its parts."""
        return [self.path, *(part.path for part in self._parts)]

    @property
    def file_bytes(self) -> int:
        """Size of the file, or of all files together."""
        return self._header.file_bytes + sum(part.file_bytes for part in self._parts)

    def read(self, names: Iterable[str] | None = None) -> dict[str, NDArray[Any]]:
        """Load tensors.

        Args:
            names: Which; all by default.

        Returns:
            Arrays by name. Strings come as object arrays of ``bytes``.

        Raises:
            CheckpointError: if names are not there (all are listed), or the file is damaged.
        """
        wanted = list(self.tensors) if names is None else items(names, "names")
        missing = [name for name in wanted if name not in self.tensors]
        if missing:
            raise CheckpointNotFoundError(
                shorten(
                    [
                        f"{len(missing)} of {len(wanted)} tensors are not in {self.path}:",
                        *(f"  {name!r}{self.suggestion(name)}" for name in missing),
                        f"it has {listing(map(repr, self.tensors))}",
                    ]
                )
            )
        if self._parts:
            found: dict[str, NDArray[Any]] = {}
            for part in self._parts:
                found.update(part.read([name for name in wanted if name in part.tensors]))
            return {name: found[name] for name in wanted}
        self._check_structure()
        return {name: self._read_one(self.tensors[name]) for name in wanted}

    def suggestion(self, name: str) -> str:
        """Return ``", did you mean 'x'?"`` if a tensor's name is close to ``name``, else ``""``."""
        close = difflib.get_close_matches(name, self.tensors, n=1)
        return f", did you mean {close[0]!r}?" if close else ""

    def verify(self) -> None:
        """Compare every byte with its checksum; needs no h5py and little memory.

        Raises:
            CheckpointError: if the file is damaged; all damaged tensors are named.
        """
        try:
            structure, found = checksums(self._stream, self._header)
        except OSError as reason:
            raise CheckpointError(f"{self.path} cannot be read: {reason}") from reason
        for part in self._parts:
            part.verify()
        faults = [
            f"  tensor {name!r}: its checksum is {crc32:08x}, expected "
            f"{self.tensors[name].crc32:08x}"
            for name, crc32 in found.items()
            if crc32 != self.tensors[name].crc32
        ]
        if structure != self._header.structure_crc32:
            faults.append("  the structures between the tensors: their checksum does not match")
        if faults:
            raise CheckpointDamagedError(shorten([f"{self.path} is damaged:", *faults]))

    def close(self) -> None:
        """Close the file; the lists stay readable."""
        for part in self._parts:
            part.close()
        if self._hdf5 is not None:
            self._hdf5.close()
            self._hdf5 = None
        self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open_parts(self) -> None:
        for listed in self._header.parts:
            file = self.path.parent / listed.file
            try:
                if lists_parts(file):
                    raise CheckpointDamagedError(
                        f"{self.path} is damaged: its part {file} lists parts itself"
                    )
                part = CheckpointReader(file)
            except (CheckpointNotFoundError, FileNotFoundError) as reason:
                raise CheckpointDamagedError(
                    f"{self.path} is damaged: its part {file} is not there"
                ) from reason
            self._parts.append(part)
            if as_part(part, listed.file) != listed:
                raise CheckpointDamagedError(
                    f"{self.path} is damaged: {file} is not the part that was written with it"
                )
        names = Counter(name for part in self._parts for name in part.tensors)
        twice = [name for name, count in names.items() if count > 1]
        if twice:
            raise CheckpointDamagedError(
                f"{self.path} is damaged: several parts have the tensor {shown(twice[0])}"
            )

    def _check_structure(self) -> None:
        """Refuse a file whose structures are not those that were written.

        Raises:
            CheckpointError: if their checksum differs.
        """
        if self._checked:
            return
        try:
            structure = _structure_checksum(self._stream, self._header)
        except OSError as reason:
            raise CheckpointError(f"{self.path} cannot be read: {reason}") from reason
        if structure != self._header.structure_crc32:
            raise CheckpointDamagedError(
                f"{self.path} is damaged: the checksum of the structures between its "
                "tensors does not match"
            )
        self._checked = True

    def _read_one(self, entry: TensorEntry) -> NDArray[Any]:
        """Load one tensor: numbers from their place in the file, strings through HDF5.

        HDF5 was not made for files of strangers, and is asked for nothing else.
        """
        try:
            if entry.dtype == "string":
                path = self._paths[entry.name]
                elements = read_strings(
                    self._open_hdf5, self._stream, path, entry, self._header.file_bytes
                )
            else:
                elements = self._read_numbers(entry)
            return decode(elements, entry.dtype, entry.crc32)
        except (
            OSError,
            RuntimeError,
            LookupError,
            ValueError,
            TypeError,
            AttributeError,
        ) as reason:
            raise CheckpointDamagedError(
                f"{self.path} is damaged: tensor {entry.name!r}: {reason}"
            ) from reason

    def _read_numbers(self, entry: TensorEntry) -> NDArray[Any]:
        import numpy as np

        elements = np.empty(entry.shape, stored_dtype(entry.dtype))
        if entry.offset is not None:
            self._stream.seek(entry.offset)
            memory = elements.reshape(-1).view(np.uint8).data
            if self._stream.readinto(memory) != len(memory):
                raise ValueError("the file ends inside of it")
        return elements

    def _open_hdf5(self) -> Any:
        if self._hdf5 is None:
            import h5py

            # The open file rather than its name, which another checkpoint may have taken since.
            self._hdf5 = h5py.File(self._stream, "r")
        return self._hdf5


def read_checkpoint(
    path: str | Path, names: Iterable[str] | None = None
) -> dict[str, NDArray[Any]]:
    """Load tensors from a checkpoint.

    Args:
        path: The file.
        names: Which tensors; all by default.

    Returns:
        Arrays by name.

    Raises:
        CheckpointError: if the file is missing, foreign, truncated or damaged, or lacks names.
    """
    with CheckpointReader(path) as reader:
        return reader.read(names)


def as_part(reader: CheckpointReader, file: str) -> PartEntry:
    """Return how a manifest lists an open checkpoint as one of its parts.

    Args:
        reader: The checkpoint.
        file: The name that its file takes.
    """
    header = reader._header  # noqa: SLF001 - of this module's own class
    return PartEntry(file, header.file_bytes, zlib.crc32(header.manifest()))


def checksums(
    stream: io.BufferedIOBase | io.RawIOBase, header: Header
) -> tuple[int, dict[str, int]]:
    """Return the CRC-32 of what lies between the tensors, and that of each tensor with a place."""
    found = {}
    structure, end = 0, header.block_bytes
    for entry, offset in _placed(header):
        structure = _crc32(stream, end, offset, structure)
        end = offset + entry.nbytes
        found[entry.name] = _crc32(stream, offset, end)
    return _crc32(stream, end, header.file_bytes, structure), found


def _structure_checksum(stream: io.BufferedIOBase, header: Header) -> int:
    structure, end = 0, header.block_bytes
    for entry, offset in _placed(header):
        structure = _crc32(stream, end, offset, structure)
        end = offset + entry.nbytes
    return _crc32(stream, end, header.file_bytes, structure)


def _placed(header: Header) -> list[tuple[TensorEntry, int]]:
    """Return the tensors that have a place in the file, in its order, each with its offset."""
    placed = [(entry, entry.offset) for entry in header.tensors if entry.offset is not None]
    return sorted(placed, key=lambda item: item[1])


def _crc32(stream: io.BufferedIOBase | io.RawIOBase, start: int, end: int, crc32: int = 0) -> int:
    """Continue ``crc32`` over the bytes from ``start`` to ``end``; too short a file differs."""
    stream.seek(start)
    while start < end:
        piece = stream.read(min(_PIECE_BYTES, end - start))
        if not piece:
            return ~crc32 & 0xFFFFFFFF
        crc32 = zlib.crc32(piece, crc32)
        start += len(piece)
    return crc32
