"""Checkpoints of strangers: damaged ones, and forged ones whose checksums fit.

A damaged file must be refused, or hold what was written into it. A forged one may hold anything,
but must not cost more than its size, nor reach outside of itself.
"""

from __future__ import annotations

import contextlib
import functools
import json
import random
import tempfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

import headrace as hr
from headrace.errors import HeadraceError

from .campaign import Campaign, WrongResultError, mutated

_NUMBERS = (0, 1, -1, 2, 7, 8, 2**16, 2**31, 2**40, 2**62, 10**14, 10**400, 0.5, True)
_JUNK: tuple[Any, ...] = (
    None,
    "",
    "x",
    "float64",
    "string",
    "resource",
    [],
    [2**40],
    {},
    "a\0b",
    "é",
)


def _tensors() -> dict[str, Any]:
    words = np.array([b"one", b"", b"three"], object)
    return {
        "layer/w": np.arange(12, dtype=np.float32).reshape(3, 4),
        "step": np.int64(7),
        "words": words,
    }


@functools.cache
def _sound() -> bytes:
    """Return a small checkpoint as Headrace writes it."""
    # lazy: the package is not there where only core is
    from headrace_train.checkpoint import write_checkpoint

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.h5"
        write_checkpoint(path, _tensors(), step=7)
        return path.read_bytes()


def _read(path: str) -> dict[str, Any]:
    from headrace_train.checkpoint import CheckpointReader

    with CheckpointReader(path) as reader:
        reader.verify()
        return reader.read()


def _check(found: dict[str, Any]) -> None:
    expected = _tensors()
    if list(found) != list(expected):
        raise WrongResultError(f"it has the tensors {list(found)}")
    for name, value in expected.items():
        if found[name].dtype != value.dtype or found[name].tolist() != value.tolist():
            raise WrongResultError(f"tensor {name!r} is {found[name]!r:.100}")


def flipped_bit(draw: random.Random, number: int) -> None:
    """Read a checkpoint of which the bit ``number`` was flipped."""
    content = bytearray(_sound())
    content[number // 8] ^= 1 << number % 8
    Path("model.h5").write_bytes(content)
    _check(_read("model.h5"))


def cut_off(draw: random.Random, number: int) -> None:
    """Read the first ``number`` bytes of a checkpoint."""
    Path("model.h5").write_bytes(_sound()[:number])
    _read("model.h5")
    raise WrongResultError("a checkpoint that was cut off is read")


def _resealed(content: bytes, change: Any) -> bytes:
    """Return a checkpoint whose header was changed, with checksums that fit what it says."""
    line_bytes = content.index(b"\n") + 1
    length = int(content[22:32])
    block = content.index(b"\x89HDF")
    manifest = json.loads(content[line_bytes : line_bytes + length])
    body = bytearray(content[block:])
    body = change(manifest, body)
    tensors = manifest.get("tensors")
    tensors = tensors if isinstance(tensors, list) else []
    # The checksum of the structures is that of what lies between the tensors.
    spans = sorted(
        (t["offset"] - block, t["offset"] - block + t["nbytes"])
        for t in tensors
        if isinstance(t, dict) and type(t.get("offset")) is int and type(t.get("nbytes")) is int
    )
    crc, at = 0, 0
    for start, stop in spans:
        if not 0 <= at <= start <= stop <= len(body):
            continue
        for tensor in tensors:
            if isinstance(tensor, dict) and tensor.get("offset") == start + block:
                tensor["crc32"] = zlib.crc32(bytes(body[start:stop]))
        crc = zlib.crc32(bytes(body[at:start]), crc)
        at = stop
    if isinstance(manifest.get("structure_crc32"), int):
        manifest["structure_crc32"] = zlib.crc32(bytes(body[at:]), crc)
    if isinstance(manifest.get("file_bytes"), int) and manifest["file_bytes"] == len(content):
        manifest["file_bytes"] = block + len(body)
    text = json.dumps(manifest, separators=(",", ":")).encode()
    line = b"headrace-checkpoint 1 %010d %08x\n" % (len(text), zlib.crc32(text))
    return (line + text).ljust(block, b"\0") + bytes(body)


def forged_header(draw: random.Random, number: int) -> None:
    """Read a checkpoint whose header tells other sizes, dtypes, places and names."""

    def change(manifest: dict[str, Any], body: bytearray) -> bytearray:
        entries = list(manifest["tensors"])
        for _ in range(draw.randint(1, 3)):
            target = manifest if draw.random() < 0.2 else draw.choice(entries)
            key = draw.choice(sorted(target))
            if key == "shape":
                target[key] = [draw.choice(_NUMBERS) for _ in range(draw.randrange(4))]
            else:
                target[key] = draw.choice((*_NUMBERS, *_JUNK))
        return body

    Path("model.h5").write_bytes(_resealed(_sound(), change))
    _read("model.h5")


def forged_body(draw: random.Random, number: int) -> None:
    """Read a checkpoint whose HDF5 structures were changed, below checksums that fit."""

    def change(manifest: dict[str, Any], body: bytearray) -> bytearray:
        length = len(body)
        changed = bytearray(mutated(draw, bytes(body)))
        # Most keep their length, or the header alone would refuse them.
        return changed if draw.random() < 0.2 else changed[:length].ljust(length, b"\0")

    Path("model.h5").write_bytes(_resealed(_sound(), change))
    _read("model.h5")


def forged_hdf5(draw: random.Random, number: int) -> None:
    """Read HDF5 files that something else wrote, below a header of ours."""
    import h5py

    with h5py.File("model.h5", "w", userblock_size=1024) as file:
        for name in ("x", "y"):
            _strange_dataset(draw, file, name)
    content = Path("model.h5").read_bytes()
    entries = [
        {
            "name": name,
            "dtype": draw.choice(("string", "float32", "int64", "uint8")),
            "shape": [draw.choice((0, 1, 3, 4, 2**20))],
            "nbytes": draw.choice((0, 3, 12, 2**20, 2**40)),
            "crc32": 0,
            "offset": draw.choice((None, None, 1024, 2048, len(content) - 12)),
        }
        for name in ("x", "y")
    ]
    manifest = {
        "step": None,
        "metadata": {},
        "producers": {},
        "tensors": entries,
        "block_bytes": 1024,
        "file_bytes": len(content),
        "structure_crc32": 0,
    }
    text = json.dumps(manifest).encode()
    line = b"headrace-checkpoint 1 %010d %08x\n" % (len(text), zlib.crc32(text))
    whole = (line + text).ljust(1024, b"\0") + content[1024:]
    Path("model.h5").write_bytes(_resealed(whole, lambda manifest, body: body))
    _read("model.h5")


def _strange_dataset(draw: random.Random, file: Any, name: str) -> None:
    import h5py

    vlen = h5py.vlen_dtype(np.uint8)
    match draw.randrange(9):
        case 0:
            file.create_dataset(name, (3,), vlen, chunks=(3,), compression="gzip")[:] = [
                np.zeros(9, "u1")
            ] * 3
        case 1:
            file.create_dataset(name, (3,), vlen)[:] = [
                np.zeros(draw.choice((0, 3, 2**16)), "u1")
            ] * 3
        case 2:
            file[name] = h5py.SoftLink(draw.choice(("/x", "/y", "/", "/nowhere")))
        case 3:
            file[name] = h5py.ExternalLink("/etc/passwd", "/x")
        case 4:
            file.create_dataset(name, (3,), "u1", external=[("/etc/passwd", 0, 3)])
        case 5:
            file.create_dataset(name, (2**40,), "u1", chunks=(2**20,), fillvalue=7)
        case 6:
            file.create_dataset(name, (3,), np.dtype([("a", "f4"), ("b", "i8")]))
        case 7:
            file.create_dataset(name, (3, 0), "f4", maxshape=(None, None))
        case _:
            file.create_group(name)


@functools.cache
def _bundle() -> tuple[bytes, bytes]:
    """Return the index and the data of a small bundle, TensorFlow's format."""
    from headrace_train.bundles.writer import write_bundle

    with tempfile.TemporaryDirectory() as folder:
        write_bundle(f"{folder}/model", _tensors())
        index, data = sorted(Path(folder).glob("model.*"), key=lambda p: p.suffix != ".index")
        return index.read_bytes(), data.read_bytes()


def changed_bundle(draw: random.Random, number: int) -> None:
    """Read a bundle of TensorFlow's format whose index or data were changed."""
    index, data = _bundle()
    if draw.random() < 0.7:
        index = mutated(draw, index)
    else:
        data = mutated(draw, data)
    Path("model.index").write_bytes(index)
    Path("model.data-00000-of-00001").write_bytes(data)
    reader = hr.train.load_checkpoint("model")
    found = {name: reader.get_tensor(name) for name in sorted(reader.get_variable_to_shape_map())}
    if data != _bundle()[1]:
        _check(found)


def changed_index(draw: random.Random, number: int) -> None:
    """Ask for the latest checkpoint of a folder whose records were changed, and save beside it."""
    content = {
        "format": "headrace-checkpoint-record",
        "version": 1,
        "checkpoints": [
            {"name": name, "series": "s", "time": 1.0, "run": "r", "kept": "latest", "metric": None}
            for name in ("model-1", "model-2")
        ],
        "keep_after": {"s": 0.0},
    }
    state = b'model_checkpoint_path: "model-2"\nall_model_checkpoint_paths: "model-1"\n'
    for name in ("model-1.h5", "model-2.h5"):
        Path(name).write_bytes(_sound())
    Path("checkpoint.json").write_bytes(mutated(draw, json.dumps(content).encode(), 6))
    Path("checkpoint").write_bytes(mutated(draw, state, 6))
    latest = hr.train.latest_checkpoint(".")
    if latest is not None and not hr.train.checkpoint_exists(latest):
        raise WrongResultError(f"the latest checkpoint {latest!r} does not exist")
    with contextlib.suppress(HeadraceError):
        hr.train.get_checkpoint_state(".")
    if number % 10 == 0:
        with hr.Graph().as_default(), hr.Session() as session:
            v = hr.Variable(1.0)
            session.run(v.initializer)
            saved = hr.train.Saver(max_to_keep=2).save(session, "./model", 3)
        if hr.train.latest_checkpoint(".") != saved:
            raise WrongResultError(f"the latest is not {saved!r}")


def campaigns() -> tuple[Campaign, ...]:
    """Return the campaigns; how many bits there are is known of the file."""
    size = len(_sound())
    return (
        Campaign(
            "checkpoint-bits", "every bit of a small checkpoint", 8 * size, flipped_bit, False
        ),
        Campaign("checkpoint-cuts", "every length of a small checkpoint", size, cut_off, False),
        Campaign("checkpoint-headers", "forged headers, resealed", 10_000, forged_header),
        Campaign("checkpoint-bodies", "changed HDF5 structures, resealed", 10_000, forged_body),
        Campaign("checkpoint-hdf5", "HDF5 of others below our header", 2_000, forged_hdf5),
        Campaign("bundles", "changed bundles of TensorFlow's format", 10_000, changed_bundle),
        Campaign("indexes", "changed records of folders", 5_000, changed_index),
    )
