"""Blocks compressed with Snappy, which need the library of the extra ``snappy``."""

from __future__ import annotations

from headrace.errors import UnimplementedError
from headrace_train.bundles.varints import read_varint

# Snappy's longest copy makes 64 bytes of 2.
_MOST_PER_BYTE = 32


def decompressed(data: bytes, what: str) -> bytes:
    """Return the bytes that were compressed.

    Args:
        data: The compressed ones.
        what: What errors call the file.

    Raises:
        ValueError: if they are no such bytes, or claim to be more than they can be.
        UnimplementedError: if the library is not installed.
    """
    nbytes, _ = read_varint(data, 0)
    if nbytes > _MOST_PER_BYTE * len(data):
        raise ValueError(f"{len(data)} compressed bytes claim to be {nbytes}")
    try:
        # lazy: an extra, for files of old versions of TensorFlow
        from cramjam import snappy
    except ImportError as error:
        raise UnimplementedError(
            f"{what} is compressed with Snappy: pip install 'headrace-train[snappy]'"
        ) from error
    try:
        made = bytes(snappy.decompress_raw(data))
    except Exception as error:
        raise ValueError(f"its compressed bytes make no sense: {error}") from error
    if len(made) != nbytes:
        raise ValueError(f"compressed bytes made {len(made)}, expected {nbytes}")
    return made
