"""The bundles that TensorFlow wrote, and bundles made to order."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from headrace_io.protos.pool import message_class
from headrace_train.bundles.checksums import extend_crc32c, masked
from headrace_train.bundles.table_writing import write_table

TABLE: dict[str, Any] = json.loads((Path(__file__).parent / "bundles.json").read_text("utf-8"))
KINDS = ("everything", "parts")


def unpacked(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text))


def laid_down(kind: str, folder: Path, name: str = "model") -> str:
    """Write the files of a bundle of the table; return its prefix."""
    for ending, content in TABLE[kind]["files"].items():
        (folder / f"{name}{ending}").write_bytes(unpacked(content))
    return str(folder / name)


def expected_tensors(kind: str) -> dict[str, tuple[str, tuple[int, ...], Any]]:
    """Return what TensorFlow read: dtype, shape, and bytes or a list of strings."""
    found = {}
    for name, (dtype, shape, content, _) in TABLE[kind]["tensors"].items():
        strings = dtype == "string"
        value = [bytes.fromhex(item) for item in content] if strings else unpacked(content)
        found[name] = (dtype, tuple(shape), value)
    return found


def content_of(array: np.ndarray[Any, Any]) -> Any:
    return array.ravel().tolist() if array.dtype == object else array.tobytes()


def entry(data: bytes = b"", *, shape: tuple[int, ...] = (), **fields: Any) -> bytes:
    """Return an entry of an index, of bytes that begin at ``offset``."""
    made = message_class("BundleEntryProto")(
        **{"dtype": 4, "size": len(data), "crc32c": masked(extend_crc32c(0, data)), **fields}
    )
    for size in shape:
        made.shape.dim.add(size=size)
    return bytes(made.SerializeToString())


def parts(shape: tuple[int, ...], *extents: list[tuple[int, int]], dtype: int = 4) -> bytes:
    """Return the entry of a tensor that is stored in parts."""
    made = message_class("BundleEntryProto")(dtype=dtype)
    for size in shape:
        made.shape.dim.add(size=size)
    for ranges in extents:
        part = made.slices.add()
        for start, length in ranges:
            part.extent.add(start=start, length=length)
    return bytes(made.SerializeToString())


def header(**fields: Any) -> bytes:
    made = message_class("BundleHeaderProto")(**{"num_shards": 1, **fields})
    return bytes(made.SerializeToString())


def made_to_order(
    folder: Path, entries: dict[bytes, bytes], data: bytes = b"", head: bytes | None = None
) -> str:
    """Write a bundle whose checksums are right, whatever else is wrong with it."""
    listed = [(b"", header() if head is None else head), *entries.items()]
    with (folder / "odd.index").open("wb") as stream:
        write_table(stream, listed)
    (folder / "odd.data-00000-of-00001").write_bytes(data)
    return str(folder / "odd")
