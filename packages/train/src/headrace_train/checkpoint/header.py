"""The header of a checkpoint: what the file holds, and the checksums of all of it.

A checkpoint is an HDF5 file with a *user block*, a stretch before the HDF5 data which HDF5 leaves
to the application and which h5py skips. It begins with one line of text,

    headrace-checkpoint 1 <manifest bytes, 10 digits> <CRC-32 of the manifest, 8 hex digits>

followed by the manifest, a JSON object, and zero bytes up to the next power of two. (Format 2 is
that of a file without tensors of its own, whose manifest lists the files that have them; see
``parts``.) The manifest
lists every tensor with its dtype, shape, checksum and place in the file, and has one more checksum
for the bytes between the tensors, which are the structures of HDF5. So a file is listed and
verified without HDF5, and the HDF5 library, which was not made to survive damage, is only ever
given a file whose structures are as they were written.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, final

from headrace import as_dtype
from headrace.errors import CheckpointDamagedError, CheckpointMismatchError, DTypeError, shown, told
from headrace_train.checkpoint.files import open_regular

if TYPE_CHECKING:
    import io
    from collections.abc import Mapping
    from pathlib import Path

MAGIC = b"headrace-checkpoint "
VERSION = 1
PARTS_VERSION = 2
_MOST_PARTS = 100_000
_LINE = re.compile(rb"headrace-checkpoint (\d{1,6}) (\d{10}) ([0-9a-f]{8})\n")
_LINE_BYTES = len(MAGIC) + len("1 ") + 10 + 1 + 8 + 1
_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
_MIN_BLOCK_BYTES = 512
_MAX_BLOCK_BYTES = 1 << 30
# The widest number in the manifest; offsets are not known when the size of the block must be.
_ANY_OFFSET = 10**15 - 1


@final
@dataclass(frozen=True, slots=True)
class TensorEntry:
    """What the header says of one tensor.

    Attributes:
        name: The name under which it was written.
        dtype: Name of the element type, as in ``"float32"``.
        shape: The shape.
        nbytes: Bytes of the elements; of strings, the sum of their lengths.
        crc32: Checksum of the elements in row-major, little-endian order.
        offset: Where the elements start in the file; None for strings and empty tensors, whose
            content lies among the structures of HDF5.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    crc32: int
    offset: int | None


@final
@dataclass(frozen=True, slots=True)
class PartEntry:
    """One of the files among which a checkpoint is divided.

    Attributes:
        file: Its name, in the same folder.
        file_bytes: Its size.
        crc32: Checksum of its manifest, which has those of all its tensors.
    """

    file: str
    file_bytes: int
    crc32: int


@final
@dataclass(frozen=True, slots=True)
class Header:
    """Everything that the user block says.

    Attributes:
        step: The global step, where one was given.
        metadata: What the writer added, a JSON object.
        producers: Versions of what wrote the file, by name.
        tensors: The tensors, in the order in which they were written.
        block_bytes: Size of the user block.
        file_bytes: Size of the whole file.
        structure_crc32: Checksum of all bytes after the user block that belong to no tensor.
        parts: The files that hold the tensors, where they are not in this one.
    """

    step: int | None
    metadata: Mapping[str, Any]
    producers: Mapping[str, str]
    tensors: tuple[TensorEntry, ...]
    block_bytes: int
    file_bytes: int
    structure_crc32: int
    parts: tuple[PartEntry, ...] = ()

    def encode(self) -> bytes:
        """Return the user block.

        Raises:
            CheckpointError: if ``metadata`` is not JSON, or the manifest outgrows the block.
        """
        manifest = self.manifest()
        version = PARTS_VERSION if self.parts else VERSION
        line = b"%s%d %010d %08x\n" % (MAGIC, version, len(manifest), zlib.crc32(manifest))
        block = line + manifest
        if len(block) > self.block_bytes:
            raise CheckpointMismatchError(
                f"the list of tensors takes {len(block)} bytes, expected at most {self.block_bytes}"
            )
        return block.ljust(self.block_bytes, b"\0")

    def manifest(self) -> bytes:
        """Return the JSON text of the header.

        Raises:
            CheckpointError: if ``metadata`` is not JSON.
        """
        content = asdict(self)
        if not self.parts:
            del content["parts"]
        try:
            text = json.dumps(content, separators=(",", ":"), allow_nan=False)
        except (TypeError, ValueError, RecursionError) as reason:
            raise CheckpointMismatchError(
                f"the metadata of a checkpoint must be what JSON can hold: {reason}"
            ) from reason
        return text.encode()


def block_bytes(header: Header) -> int:
    """Return the size of a user block that holds ``header`` once all offsets are known."""
    widest = Header(
        step=header.step,
        metadata=header.metadata,
        producers=header.producers,
        tensors=tuple(
            TensorEntry(e.name, e.dtype, e.shape, e.nbytes, e.crc32, _ANY_OFFSET)
            for e in header.tensors
        ),
        block_bytes=_MAX_BLOCK_BYTES,
        file_bytes=_ANY_OFFSET,
        structure_crc32=2**32 - 1,
        parts=header.parts,
    )
    needed = _LINE_BYTES + len(widest.manifest())
    size = max(_MIN_BLOCK_BYTES, 1 << (needed - 1).bit_length())
    if size > _MAX_BLOCK_BYTES:
        raise CheckpointMismatchError(
            f"the list of tensors and the metadata take {needed} bytes, "
            f"expected at most {_MAX_BLOCK_BYTES}; store large values as tensors"
        )
    return size


def read_header(stream: io.BufferedIOBase, path: Path) -> Header:
    """Read and check the user block at the start of ``stream``.

    Args:
        stream: The file, open at its start.
        path: What messages call it.

    Raises:
        CheckpointError: if this is no checkpoint of ours, is truncated, or its header is damaged.
    """
    line = stream.read(_LINE_BYTES)
    found = _LINE.match(line)
    if found is None:
        raise CheckpointDamagedError(f"{path} is not a Headrace checkpoint: {_describe(line)}")
    version = int(found[1])
    if version not in (VERSION, PARTS_VERSION):
        raise CheckpointDamagedError(
            f"{path} is a checkpoint of format {version}, this Headrace reads formats "
            f"{VERSION} and {PARTS_VERSION}: use the version of headrace-train that wrote it"
        )
    length = int(found[2])
    manifest = stream.read(min(length, _MAX_BLOCK_BYTES))
    if len(manifest) < length:
        raise CheckpointDamagedError(f"{path} is truncated: it ends inside its header")
    if zlib.crc32(manifest) != int(found[3], 16):
        raise CheckpointDamagedError(
            f"{path} is damaged: the checksum of its header does not match"
        )
    try:
        header = _decode(json.loads(manifest), version)
    except (ValueError, TypeError, KeyError, RecursionError, DTypeError) as reason:
        raise CheckpointDamagedError(
            f"{path} has a header that makes no sense: {reason!r}"
        ) from reason
    padding = stream.read(max(header.block_bytes - _LINE_BYTES - length, 0))
    size = stream.seek(0, 2)
    if size < header.file_bytes:
        raise CheckpointDamagedError(
            f"{path} is truncated: it has {size} bytes and was written with {header.file_bytes}"
        )
    if size > header.file_bytes:
        raise CheckpointDamagedError(
            f"{path} was changed after it was written: it has {size} bytes and was written with "
            f"{header.file_bytes}"
        )
    if padding.strip(b"\0"):
        raise CheckpointDamagedError(f"{path} is damaged: there are stray bytes after its header")
    return header


def lists_parts(file: Path) -> bool:
    """Whether a file begins like the manifest of a checkpoint in parts.

    Raises:
        OSError: if it cannot be read.
    """
    beginning = b"%s%d " % (MAGIC, PARTS_VERSION)
    with open_regular(file) as stream:
        return stream.read(len(beginning)) == beginning


def _describe(line: bytes) -> str:
    """Say what a file seems to be that starts with ``line``."""
    if not line:
        return "it is empty"
    if MAGIC.startswith(line[: len(MAGIC)]):
        return "it begins like one, but its first line is cut off or damaged"
    if line.startswith(_HDF5_MAGIC):
        return "it is an HDF5 file that something else wrote or rewrote"
    return f"it starts with {line[:16]!r}, expected {MAGIC!r}"


def _decode(manifest: Any, version: int) -> Header:
    """Build a header from JSON, believing nothing.

    Raises:
        ValueError, TypeError, KeyError: if anything is not as ``Header.encode`` would write it.
    """
    entries = tuple(
        TensorEntry(
            name=_of(str, item["name"]),
            dtype=as_dtype(_of(str, item["dtype"])).name,
            shape=tuple(_natural(extent) for extent in _of(list, item["shape"])),
            nbytes=_natural(item["nbytes"]),
            crc32=_natural(item["crc32"]),
            offset=None if item["offset"] is None else _natural(item["offset"]),
        )
        for item in _of(list, manifest["tensors"])
    )
    step = manifest["step"]
    header = Header(
        step=None if step is None else _of(int, step),
        metadata=_of(dict, manifest["metadata"]),
        producers={str(k): _of(str, v) for k, v in _of(dict, manifest["producers"]).items()},
        tensors=entries,
        block_bytes=_natural(manifest["block_bytes"]),
        file_bytes=_natural(manifest["file_bytes"]),
        structure_crc32=_natural(manifest["structure_crc32"]),
        parts=_decode_parts(manifest["parts"]) if version == PARTS_VERSION else (),
    )
    if header.parts and entries:
        raise ValueError("a file that lists parts has no tensors of its own")
    if len({entry.name for entry in entries}) != len(entries):
        raise ValueError("a tensor is listed twice")
    end = header.block_bytes
    for entry in sorted((e for e in entries if e.offset is not None), key=lambda e: e.offset or 0):
        if (entry.offset or 0) < end:
            raise ValueError(f"the place of tensor {entry.name!r} is taken")
        end = (entry.offset or 0) + entry.nbytes
    if end > header.file_bytes:
        raise ValueError("a tensor lies beyond the end of the file")
    for entry in entries:
        elements = math.prod(entry.shape)
        dtype = as_dtype(entry.dtype)
        # HDF5 keeps at least 16 bytes per string, so the shape cannot promise more than there is.
        if dtype.kind == "string":
            fits = entry.offset is None and elements * 16 <= header.file_bytes
        else:
            fits = entry.nbytes == elements * dtype.itemsize
            fits = fits and (entry.offset is None) == (entry.nbytes == 0)
        if not fits or dtype.kind == "resource":
            raise ValueError(f"the size of tensor {entry.name!r} does not fit its shape")
    return header


def _decode_parts(listed: Any) -> tuple[PartEntry, ...]:
    parts = tuple(
        PartEntry(_of(str, item["file"]), _natural(item["file_bytes"]), _natural(item["crc32"]))
        for item in _of(list, listed)[: _MOST_PARTS + 1]
    )
    if not 0 < len(parts) <= _MOST_PARTS:
        raise ValueError(f"it lists {len(listed)} parts")
    for part in parts:
        # Nothing outside the folder may be meant.
        if not part.file or "/" in part.file or "\0" in part.file or part.file in (".", ".."):
            raise ValueError(f"{shown(part.file)} is no name of a part")
    if len({part.file for part in parts}) != len(parts):
        raise ValueError("a part is listed twice")
    return parts


def _of(kind: type, value: Any) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"expected {kind.__name__}, got {shown(value, 60)}")
    return value


def _natural(value: Any) -> int:
    if _of(int, value) < 0:
        raise ValueError(f"expected a number of at least 0, got {told(value)}")
    return int(value)
