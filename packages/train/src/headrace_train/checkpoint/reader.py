"""Reading a checkpoint: its list without loading it, its tensors with their checksums verified."""

from __future__ import annotations

import difflib
import types
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, final

from headrace.errors import CheckpointError, shorten
from headrace_train.checkpoint.encoding import dataset_paths, decode, stored_dtype
from headrace_train.checkpoint.header import Header, TensorEntry, read_header

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

        Raises:
            CheckpointError: if there is none, or it is not a whole and sound one of ours.
        """
        self.path = Path(path)
        try:
            self._stream = self.path.open("rb")
        except FileNotFoundError as reason:
            raise CheckpointError(f"there is no checkpoint {self.path}") from reason
        except OSError as reason:
            raise CheckpointError(f"{self.path} cannot be read: {reason}") from reason
        self._hdf5: Any = None
        try:
            self._header = read_header(self._stream, self.path)
        except OSError as reason:
            self._stream.close()
            raise CheckpointError(f"{self.path} cannot be read: {reason}") from reason
        except BaseException:
            self._stream.close()
            raise
        self.tensors: Mapping[str, TensorEntry] = types.MappingProxyType(
            {entry.name: entry for entry in self._header.tensors}
        )
        self.step = self._header.step
        self.metadata = self._header.metadata
        self.producers = self._header.producers
        self._paths = dataset_paths(self.tensors)

    @property
    def file_bytes(self) -> int:
        """Size of the file."""
        return self._header.file_bytes

    def read(self, names: Iterable[str] | None = None) -> dict[str, NDArray[Any]]:
        """Load tensors.

        Args:
            names: Which; all by default.

        Returns:
            Arrays by name. Strings come as object arrays of ``bytes``.

        Raises:
            CheckpointError: if names are not there (all are listed), or the file is damaged.
        """
        wanted = list(self.tensors) if names is None else list(names)
        missing = [name for name in wanted if name not in self.tensors]
        if missing:
            raise CheckpointError(
                shorten(
                    [
                        f"{len(missing)} of {len(wanted)} tensors are not in {self.path}:",
                        *(f"  {name!r}{self.suggestion(name)}" for name in missing),
                    ]
                )
            )
        file = self._open()
        return {name: self._read_one(file, self.tensors[name]) for name in wanted}

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
        faults = [
            f"  tensor {name!r}: its checksum is {crc32:08x}, expected "
            f"{self.tensors[name].crc32:08x}"
            for name, crc32 in found.items()
            if crc32 != self.tensors[name].crc32
        ]
        if structure != self._header.structure_crc32:
            faults.append("  the structures between the tensors: their checksum does not match")
        if faults:
            raise CheckpointError(shorten([f"{self.path} is damaged:", *faults]))

    def close(self) -> None:
        """Close the file; the lists stay readable."""
        if self._hdf5 is not None:
            self._hdf5.close()
            self._hdf5 = None
        self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> Any:
        """Return the HDF5 file, opened after its structures were found to be sound."""
        if self._hdf5 is None:
            import h5py

            try:
                structure = _structure_checksum(self._stream, self._header)
                if structure != self._header.structure_crc32:
                    raise CheckpointError(
                        f"{self.path} is damaged: the checksum of the structures between its "
                        "tensors does not match"
                    )
                # The open file rather than its name, which another checkpoint may have taken since.
                self._hdf5 = h5py.File(self._stream, "r")
            except (OSError, RuntimeError) as reason:
                raise CheckpointError(f"{self.path} cannot be read: {reason}") from reason
        return self._hdf5

    def _read_one(self, file: Any, entry: TensorEntry) -> NDArray[Any]:
        import numpy as np

        try:
            dataset = file[self._paths[entry.name]]
            _check_layout(dataset, entry)
            elements: NDArray[Any] = np.empty(1, object)
            if entry.dtype == "string" and not entry.shape:
                # NumPy would take the bytes of the one string for elements of the tensor.
                elements[0] = dataset[()]
                elements = elements.reshape(())
            else:
                elements = np.asarray(dataset[()])
            return decode(elements, entry.dtype, entry.crc32)
        except (
            OSError,
            RuntimeError,
            LookupError,
            ValueError,
            TypeError,
            AttributeError,
        ) as reason:
            raise CheckpointError(
                f"{self.path} is damaged: tensor {entry.name!r}: {reason}"
            ) from reason


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


def _check_layout(dataset: Any, entry: TensorEntry) -> None:
    """Refuse a dataset that is not the one the header speaks of, whose size nobody has checked.

    Raises:
        ValueError: if it is another.
    """
    if dataset.shape != entry.shape:
        raise ValueError(f"its shape is {dataset.shape}, expected {entry.shape}")
    if entry.dtype == "string":
        return
    # Complex and bool have a description of their own in HDF5; h5py translates it.
    if dataset.dtype != stored_dtype(entry.dtype):
        raise ValueError(f"its elements are {dataset.dtype}, expected {stored_dtype(entry.dtype)}")
    if entry.offset is not None and dataset.id.get_offset() != entry.offset:
        raise ValueError("it is not in its place")
