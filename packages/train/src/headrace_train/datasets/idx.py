"""The IDX file format: one array of numbers per file, plain or gzipped, read with suspicion.

A file is two zero bytes, a code for the element type, the number of dimensions, each dimension as
a big-endian 32-bit integer, and then the elements in row-major order, also big-endian.

References:
    Y. LeCun, C. Cortes and C. Burges, "The MNIST database of handwritten digits", 1998,
    http://yann.lecun.com/exdb/mnist/ (section "File formats").
"""

from __future__ import annotations

import contextlib
import gzip
import math
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import DatasetDamagedError, DatasetError, DatasetNotFoundError
from headrace_train.checkpoint.files import open_regular

if TYPE_CHECKING:
    import io

    from numpy.typing import NDArray

_DTYPES: dict[int, np.dtype[Any]] = {
    0x08: np.dtype(np.uint8),
    0x09: np.dtype(np.int8),
    0x0B: np.dtype(">i2"),
    0x0C: np.dtype(">i4"),
    0x0D: np.dtype(">f4"),
    0x0E: np.dtype(">f8"),
}
_CODES = {dtype.newbyteorder("="): code for code, dtype in _DTYPES.items()}
_GZIP_MAGIC = b"\x1f\x8b"
_READ_BYTES = 1 << 22


def read_idx(path: str | Path) -> NDArray[Any]:
    """Read the array in an IDX file.

    Whether the file is gzipped is seen from its first bytes, not from its name.

    Args:
        path: The file.

    Returns:
        The array, in the machine's byte order, of dtype uint8, int8, int16, int32, float32 or
        float64.

    Raises:
        DatasetError: if the file is missing, is not an IDX file, ends early, goes on after its
            last element, or is damaged.
    """
    file = Path(path)
    try:
        with contextlib.ExitStack() as stack:
            # A pipe could block, and a device need not end.
            stream: io.BufferedIOBase = stack.enter_context(open_regular(file))
            if stream.read(2) == _GZIP_MAGIC:
                stream.seek(0)
                stream = stack.enter_context(gzip.GzipFile(fileobj=stream))
            else:
                stream.seek(0)
            return _parse(stream, file)
    except FileNotFoundError as reason:
        raise DatasetNotFoundError(f"there is no file {file}") from reason
    except (EOFError, gzip.BadGzipFile, zlib.error) as reason:
        raise DatasetDamagedError(
            f"{file} is a damaged gzip file: {reason}\n  fetch it again, it was not copied whole"
        ) from reason
    except OSError as reason:
        raise DatasetError(f"{file} cannot be read: {reason}") from reason


def write_idx(path: str | Path, array: NDArray[Any]) -> None:
    """Write an array as an IDX file, gzipped when the name ends in ``.gz``.

    Equal arrays give equal files.

    Args:
        path: The file, replaced if it exists.
        array: At least one and at most 255 dimensions, of one of the dtypes of ``read_idx``.

    Raises:
        DatasetError: if the format has no code for the dtype, or cannot hold the shape.
    """
    code = _CODES.get(array.dtype.newbyteorder("="))
    if code is None:
        known = ", ".join(str(dtype) for dtype in _CODES)
        raise DatasetError(f"the IDX format cannot hold {array.dtype}; it holds {known}")
    if not 1 <= array.ndim <= 255 or max(array.shape) >= 2**32:
        raise DatasetError(f"the IDX format cannot hold an array of shape {array.shape}")
    content = struct.pack(f">HBB{array.ndim}I", 0, code, array.ndim, *array.shape)
    content += array.astype(_DTYPES[code]).tobytes()
    if Path(path).suffix == ".gz":
        content = gzip.compress(content, mtime=0)
    Path(path).write_bytes(content)


def _parse(stream: io.BufferedIOBase, file: Path) -> NDArray[Any]:
    magic = stream.read(4)
    if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] not in _DTYPES or magic[3] == 0:
        raise DatasetDamagedError(
            f"{file} is not an IDX file: it starts with the bytes {magic.hex(' ') or '(none)'}, "
            "expected 00 00, an element type (08, 09, 0b, 0c, 0d or 0e) and a number of dimensions"
        )
    dtype, ndim = _DTYPES[magic[2]], magic[3]
    header = stream.read(4 * ndim)
    if len(header) < 4 * ndim:
        raise DatasetDamagedError(
            f"{file} ends inside its header, which announces {ndim} dimensions"
        )
    shape = struct.unpack(f">{ndim}I", header)
    expected_bytes = math.prod(shape) * dtype.itemsize
    # Read in pieces: a damaged header may announce more than there is memory for.
    content = bytearray()
    while len(content) <= expected_bytes:
        piece = stream.read(min(_READ_BYTES, expected_bytes + 1 - len(content)))
        if not piece:
            break
        content += piece
    if len(content) != expected_bytes:
        fault = "is truncated" if len(content) < expected_bytes else "has trailing bytes"
        got = f"{len(content)}" if len(content) < expected_bytes else "more"
        raise DatasetDamagedError(
            f"{file} {fault}: its header announces {dtype.name} {list(shape)}, "
            f"which is {expected_bytes} bytes, and {got} follow"
        )
    values = np.frombuffer(content, dtype).reshape(shape)
    return values.astype(dtype.newbyteorder("="), copy=False)
