"""Other files of strangers: IDX, vocabularies, records, events, saved models; and settings."""

from __future__ import annotations

import functools
import gzip
import random
import struct
import tempfile
from pathlib import Path

import numpy as np

import headrace as hr
from headrace.plugins.host import host

from .campaign import Campaign, WrongResultError, environment, mutated

_ARRAY = np.arange(24, dtype=np.int16).reshape(2, 3, 4)


@functools.cache
def _idx() -> bytes:
    from headrace_train.datasets import write_idx

    with tempfile.TemporaryDirectory() as folder:
        write_idx(Path(folder) / "a", _ARRAY)
        return (Path(folder) / "a").read_bytes()


def idx(draw: random.Random, number: int) -> None:
    """Read IDX files: changed, compressed, or with a header of random sizes."""
    from headrace_train.datasets import read_idx

    content = _idx()
    match draw.randrange(4):
        case 0:
            content = mutated(draw, content)
        case 1:
            content = mutated(draw, gzip.compress(content, mtime=0))
        case 2:
            sizes = [
                draw.choice((0, 1, 2, 2**16, 2**31, 2**32 - 1)) for _ in range(draw.randrange(5))
            ]
            kind = draw.choice((0x08, 0x09, 0x0B, 0x0C, 0x0D, 0x0E, 0x00))
            head = bytes([0, 0, kind, draw.choice((len(sizes), 0, 1, 255))])
            content = (
                head + b"".join(struct.pack(">I", size) for size in sizes) + draw.randbytes(48)
            )
        case _:
            # A small file that unpacks to a large one.
            head = bytes.fromhex("00000801") + struct.pack(">I", draw.choice((2**26, 2**32 - 1)))
            content = gzip.compress(head + bytes(draw.choice((2**10, 2**20))), mtime=0)
    Path("a").write_bytes(content)
    read_idx("a")


def vocabulary(draw: random.Random, number: int) -> None:
    """Make tables of random files with random columns, and look words up."""
    lines = [
        draw.choice(
            (
                b"one",
                b"two\t2",
                b"2\tthree",
                b"",
                b"\t",
                b"\xff\xfe",
                b"a\0b",
                b"1e400\t1",
                b"x" * 10_000,
            )
        )
        for _ in range(draw.randrange(12))
    ]
    Path("words.txt").write_bytes(draw.choice((b"\n", b"\r\n", b"\r")).join(lines))
    with hr.Graph().as_default(), hr.Session() as session:
        if draw.random() < 0.5:
            table = hr.lookup.index_table_from_file(
                "words.txt",
                num_oov_buckets=draw.choice((0, 1, 5, -1, 2**40)),
                vocab_size=draw.choice((None, None, 0, 1, 3, 100, -1, 2**62)),
                default_value=draw.choice((-1, 0, 2**62)),
                key_column_index=draw.choice((-2, -1, 0, 1, 7)),
                value_column_index=draw.choice((-1, -2, 0, 1)),
                delimiter=draw.choice(("\t", " ", "", "ab", "é")),
            )
            keys = hr.constant(["one", "zwei", ""])
        else:
            table = hr.lookup.index_to_string_table_from_file(
                "words.txt",
                vocab_size=draw.choice((None, 0, 1, 3, 100)),
                key_column_index=draw.choice((-1, -2, 0, 1)),
                value_column_index=draw.choice((-2, -1, 0, 1)),
                delimiter=draw.choice(("\t", ",")),
            )
            keys = hr.constant([0, 1, -1, 2**62], hr.int64)
        values = table.lookup(keys)
        session.run(hr.tables_initializer())
        session.run([values, table.size()])


@functools.cache
def _records() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/a.tfrecord"
        with hr.python_io.TFRecordWriter(path) as writer:
            for record in (b"first", b"", b"third" * 50):
                writer.write(record)
        return Path(path).read_bytes()


def records(draw: random.Random, number: int) -> None:
    """Read files of records: changed, or with lengths whose checksums fit."""
    sound = list(_split(_records()))
    content = mutated(draw, _records())
    if draw.random() < 0.3:
        length = struct.pack("<Q", draw.choice((0, 5, 2**31, 2**40, 2**63, 2**64 - 1)))
        content = length + struct.pack("<I", _masked(length)) + draw.randbytes(40)
    Path("a.tfrecord").write_bytes(content)
    found = list(hr.python_io.tf_record_iterator("a.tfrecord"))
    # A file may have lost records at its end; what is there must be what was written.
    if any(record not in sound for record in found):
        raise WrongResultError(f"there are records that nobody wrote: {found!r:.200}")


def _split(content: bytes) -> list[bytes]:
    found, at = [], 0
    while at < len(content):
        (length,) = struct.unpack_from("<Q", content, at)
        found.append(content[at + 12 : at + 12 + length])
        at += length + 16
    return found


def _masked(data: bytes) -> int:
    from google_crc32c import value

    crc = value(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


@functools.cache
def _saved_model() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "export"
        with hr.Graph().as_default(), hr.Session() as session:
            x = hr.placeholder(hr.float32, [None, 3], name="x")
            w = hr.Variable(np.ones((3, 2), np.float32), name="w")
            session.run(w.initializer)
            hr.saved_model.simple_save(session, str(folder), {"x": x}, {"y": hr.matmul(x, w)})
        return {
            str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()
        }


def saved_model(draw: random.Random, number: int) -> None:
    """Load a saved model of which one file was changed."""
    files = dict(_saved_model())
    name = draw.choice(sorted(files))
    files[name] = mutated(draw, files[name])
    for path, content in files.items():
        Path("export", path).parent.mkdir(parents=True, exist_ok=True)
        Path("export", path).write_bytes(content)
    with hr.Graph().as_default(), hr.Session() as session:
        hr.saved_model.load(session, ["serve"], "export")


_ODD = (
    *("", " ", "0", "-1", "1", "1.5", "nan", "inf", "-inf", "1e400", "9" * 400, "9" * 5000, "0x10"),
    *("१२", "true", "plain", "full", "/nosuch/folder", "/dev/null", "/dev/zero", "/", "~", "$HOME"),
    *(
        "a,b,,c",
        ",",
        "cpu",
        "\udc80",
        "x" * 100_000,
        "1GB",
        "1 GB",
        "-5MB",
        "1e3MB",
        "9" * 30 + "GB",
    ),
    *("%s", "{}", "\n", "\t1", "1\n", "../..", ".", "0.0", "-0", "+1", "1_000", "🙂"),
)


def settings(draw: random.Random, number: int) -> None:
    """Set an environment variable to an odd text, read it, and run a step."""
    known = [s for group in host().settings.by_package().values() for s in group]
    setting = known[number % len(known)]
    text = _ODD[number // len(known) % len(_ODD)]
    with environment(**{setting.variable: text}):
        setting.read()
        with hr.Graph().as_default(), hr.Session() as session:
            if session.run(hr.constant(2.0) * 3.0) != 6.0:
                raise WrongResultError("2 * 3 is not 6")


def campaigns() -> tuple[Campaign, ...]:
    """Return the campaigns; how many settings there are is known of the packages."""
    count = sum(map(len, host().settings.by_package().values())) * len(_ODD)
    return (
        Campaign("idx", "IDX files, plain and compressed", 10_000, idx),
        Campaign("vocabularies", "vocabulary files and their columns", 4_000, vocabulary),
        Campaign("records", "files of records", 10_000, records),
        Campaign("saved-models", "saved models with one changed file", 4_000, saved_model),
        Campaign("settings", "environment variables with odd values", count, settings, False),
    )
