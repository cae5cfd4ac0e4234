"""Reading a bundle: tensors one by one, and what is in it without loading any."""

from __future__ import annotations

import contextlib
import difflib
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from headrace import as_dtype
from headrace.errors import (
    CheckpointDamagedError,
    CheckpointError,
    CheckpointNotFoundError,
    DTypeError,
    UnimplementedError,
    shorten,
)
from headrace.extend.arguments import items
from headrace_train.bundles.checksums import extend_crc32c, masked, pieces
from headrace_train.bundles.index import BundleEntry, read_index
from headrace_train.bundles.paths import bundle_prefix, data_path, index_path
from headrace_train.bundles.strings import decode_strings

if TYPE_CHECKING:
    import io
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

# The variable in which programs count steps, by custom of TensorFlow.
_STEP = "global_step"


@final
class BundleReader:
    """An open bundle.

    Opening it reads and checks the index. Its files are opened when a tensor in them is read, and
    each tensor is compared with its checksum. No more memory is taken than the files have bytes.

    Attributes:
        path: The prefix of the bundle.
        tensors: What the index says of each tensor, by name, in the order of the names. A tensor
            that is stored in parts is there once.
        stored: What lies in the files, tensors and parts, in the order of the index.
        metadata: Empty; bundles have none.
        producers: What wrote it, as far as bundles say.
    """

    def __init__(self, path: str | Path) -> None:
        """Open a bundle.

        Args:
            path: Its prefix, or one of its files.

        Raises:
            CheckpointError: if there is none, or its index is damaged.
            UnimplementedError: if it is of a kind that is not read.
        """
        prefix = bundle_prefix(path)
        self.path = Path(prefix)
        index = index_path(prefix)
        try:
            with index.open("rb") as stream:
                found = read_index(stream, str(index))
        except FileNotFoundError as reason:
            raise CheckpointNotFoundError(f"there is no checkpoint {prefix}") from reason
        except OSError as reason:
            raise CheckpointError(f"{index} cannot be read: {reason}") from reason
        self._shards = found.shards
        self._closed = False
        self._streams: dict[int, io.BufferedReader] = {}
        self.tensors: Mapping[str, BundleEntry] = types.MappingProxyType(found.tensors)
        self.stored = found.stored
        self.metadata: Mapping[str, Any] = {}
        self.producers: Mapping[str, str] = {"format": "TensorFlow V2"}

    @property
    def step(self) -> int | None:
        """The number in the tensor ``global_step``, where programs keep it by custom."""
        entry = self.tensors.get(_STEP)
        if entry is None or entry.shape or entry.dtype not in ("int32", "int64"):
            return None
        try:
            return int(self._read(entry))
        except CheckpointError:
            # Who lists a bundle need not have its data; who reads the tensor is told.
            return None

    @property
    def file_bytes(self) -> int:
        """Size of all its files that are there."""
        files = [data_path(self.path, shard, self._shards) for shard in range(self._shards)]
        sizes = 0
        for file in (index_path(self.path), *files):
            with contextlib.suppress(FileNotFoundError):
                sizes += file.stat().st_size
        return sizes

    def read(self, names: Iterable[str] | None = None) -> dict[str, NDArray[Any]]:
        """Load tensors.

        Args:
            names: Which; all by default.

        Returns:
            Arrays by name. Strings come as object arrays of ``bytes``; TensorFlow's quantized
            numbers as the whole numbers that they are stored as.

        Raises:
            CheckpointError: if names are not there (all are listed), or files are missing or
                damaged.
            UnimplementedError: if a tensor is of a type that Headrace does not have.
        """
        wanted = list(self.tensors) if names is None else items(names, "names")
        missing = [name for name in wanted if name not in self.tensors]
        if missing:
            raise CheckpointNotFoundError(
                shorten(
                    [
                        f"{len(missing)} of {len(wanted)} tensors are not in {self.path}:",
                        *(f"  {name!r}{self.suggestion(name)}" for name in missing),
                    ]
                )
            )
        return {name: self._read(self.tensors[name]) for name in wanted}

    def suggestion(self, name: str) -> str:
        """Return ``", did you mean 'x'?"`` if a tensor's name is close to ``name``, else ``""``."""
        close = difflib.get_close_matches(name, self.tensors, n=1)
        return f", did you mean {close[0]!r}?" if close else ""

    def verify(self) -> None:
        """Compare every tensor with its checksum.

        Raises:
            CheckpointError: if any differs, or a file is missing or cut short; all are named.
        """
        faults: dict[str, None] = {}
        for entry in self.stored:
            try:
                if entry.dtype == "string":
                    self._strings(entry)
                else:
                    self._check(entry, self._crc(entry))
            except CheckpointError as reason:
                # Once for each missing file, and without the path for each tensor.
                text = str(reason).removeprefix(f"{self.path} is damaged: ")
                faults[f"  {text}"] = None
        if faults:
            raise CheckpointDamagedError(shorten([f"{self.path} is damaged:", *faults]))

    def close(self) -> None:
        """Close the files; the lists stay readable."""
        self._closed = True
        for stream in self._streams.values():
            stream.close()
        self._streams.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, entry: BundleEntry) -> NDArray[Any]:
        if entry.dtype == "string":
            dtype: np.dtype[Any] = np.dtype(object)
        else:
            try:
                dtype = as_dtype(entry.dtype).numpy
            except DTypeError as error:
                raise UnimplementedError(
                    f"tensor {entry.name!r} of {self.path} is of TensorFlow's type {entry.dtype}, "
                    "which Headrace does not have; read the others by name"
                ) from error
        if not entry.parts:
            return self._one(entry, dtype)
        for _, part in entry.parts:
            self._stream(part)
        made: NDArray[Any] = np.empty(entry.shape, dtype)
        for place, part in entry.parts:
            made[place] = self._one(part, dtype)
        return made

    def _one(self, entry: BundleEntry, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Load what is stored in one piece."""
        if entry.dtype == "string":
            return self._strings(entry).reshape(entry.shape)
        # Only now is it known that the file has as many bytes.
        self._stream(entry)
        raw = np.empty(entry.nbytes, np.uint8)
        self._check(entry, self._crc(entry, raw))
        if dtype == np.bool_ and entry.nbytes and raw.max() > 1:
            raise self._damaged(entry, "it has bytes other than 0 and 1")
        return raw.view(dtype.newbyteorder("<")).astype(dtype, copy=False).reshape(entry.shape)

    def _strings(self, entry: BundleEntry) -> NDArray[Any]:
        data = self._bytes(entry)
        try:
            found, crc = decode_strings(data, int(np.prod(entry.shape, dtype=object)))
        except ValueError as reason:
            raise self._damaged(entry, str(reason)) from reason
        self._check(entry, crc)
        return found

    def _bytes(self, entry: BundleEntry) -> bytes:
        return b"".join(self._pieces(entry))

    def _crc(self, entry: BundleEntry, into: NDArray[np.uint8] | None = None) -> int:
        """Return the checksum of the bytes of a tensor, which are copied into an array if given."""
        crc = place = 0
        for piece in self._pieces(entry):
            crc = extend_crc32c(crc, piece)
            if into is not None:
                into[place : place + len(piece)] = np.frombuffer(piece, np.uint8)
                place += len(piece)
        return crc

    def _pieces(self, entry: BundleEntry) -> Iterable[bytes]:
        stream = self._stream(entry)
        try:
            yield from pieces(stream, entry.offset, entry.nbytes)
        except (OSError, EOFError) as reason:
            raise self._damaged(entry, str(reason)) from reason

    def _stream(self, entry: BundleEntry) -> io.BufferedReader:
        """Return the open file of a tensor, which is long enough for it."""
        if self._closed:
            raise CheckpointError(f"the checkpoint {self.path} was closed; open it again")
        stream = self._streams.get(entry.shard)
        file = data_path(self.path, entry.shard, self._shards)
        if stream is None:
            try:
                stream = self._streams[entry.shard] = file.open("rb")
            except FileNotFoundError as reason:
                raise CheckpointNotFoundError(
                    f"the file {file} of the checkpoint {self.path} is not there"
                ) from reason
            except OSError as reason:
                raise CheckpointError(f"{file} cannot be read: {reason}") from reason
        found = stream.seek(0, 2)
        if entry.offset + entry.nbytes > found:
            raise self._damaged(
                entry,
                f"{file} has {found} bytes, expected {entry.offset + entry.nbytes} or more",
            )
        return stream

    def _check(self, entry: BundleEntry, crc: int) -> None:
        if masked(crc) != entry.crc32c:
            raise self._damaged(
                entry, f"its checksum is {masked(crc):08x}, expected {entry.crc32c:08x}"
            )

    def _damaged(self, entry: BundleEntry, reason: str) -> CheckpointDamagedError:
        return CheckpointDamagedError(f"{self.path} is damaged: tensor {entry.name!r}: {reason}")
