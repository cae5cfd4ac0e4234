"""Bundles of TensorFlow: read bit for bit, written, and refused where they are damaged."""

from __future__ import annotations

import re
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.errors import (
    CheckpointDamagedError,
    CheckpointError,
    CheckpointNotFoundError,
    DataLossError,
    UnimplementedError,
)
from headrace_train.bundles.checksums import extend_crc32c, masked
from headrace_train.bundles.reader import BundleReader
from headrace_train.bundles.slices import Part
from headrace_train.bundles.tables import FOOTER_BYTES, TRAILER_BYTES, read_table
from headrace_train.bundles.varints import read_varint, varint
from headrace_train.bundles.writer import write_bundle
from headrace_train.checkpoint.opening import open_checkpoint

from .bundle_files import (
    KINDS,
    content_of,
    entry,
    expected_tensors,
    header,
    laid_down,
    made_to_order,
    parts,
)

# -- what TensorFlow wrote


@pytest.mark.parametrize("kind", KINDS)
def test_every_tensor_is_read_bit_for_bit(kind: str, tmp_path: Path) -> None:
    expected = expected_tensors(kind)
    with BundleReader(laid_down(kind, tmp_path)) as reader:
        reader.verify()
        found = reader.read()
        assert list(found) == sorted(expected) == list(reader.tensors)
        for name, (dtype, shape, content) in expected.items():
            array = found[name]
            stored = reader.tensors[name]
            assert array.shape == stored.shape == shape, name
            # There are no quantized numbers here: they are read as what holds them.
            assert stored.dtype == dtype.removeprefix("q"), name
            assert array.dtype.name == stored.dtype.replace("string", "object"), name
            assert content_of(array) == content, name


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_is_read_again(kind: str, tmp_path: Path) -> None:
    with BundleReader(laid_down(kind, tmp_path)) as reader:
        tensors = reader.read()
    write_bundle(tmp_path / "again", tensors)
    with BundleReader(tmp_path / "again") as reader:
        reader.verify()
        found = reader.read()
    assert {name: (a.dtype, a.shape, content_of(a)) for name, a in found.items()} == {
        name: (a.dtype, a.shape, content_of(a)) for name, a in tensors.items()
    }


def test_bytes_are_written_as_tensorflow_writes_them(tmp_path: Path) -> None:
    prefix = laid_down("everything", tmp_path)
    with BundleReader(prefix) as reader:
        whole = {name: e for name, e in reader.tensors.items() if not e.parts}
        tensors = reader.read(whole)
        write_bundle(tmp_path / "again", tensors)
        with BundleReader(tmp_path / "again") as again:
            for name, stored in whole.items():
                ours = again.tensors[name]
                assert (ours.nbytes, ours.crc32c) == (stored.nbytes, stored.crc32c), name


def test_an_index_of_many_blocks(tmp_path: Path) -> None:
    tensors = {f"scope_{n % 7}/{'x' * (n % 40)}/{n}": np.float32(n) for n in range(2000)}
    write_bundle(tmp_path / "many", tensors)
    with BundleReader(tmp_path / "many") as reader:
        assert list(reader.tensors) == sorted(tensors)
        assert {name: float(value) for name, value in reader.read().items()} == tensors
        with pytest.raises(CheckpointNotFoundError, match=r"1 of 2 .*\n.*did you mean 'scope_"):
            reader.read(["scope_0//0", "scope_1//8400"])


def test_a_closed_bundle(tmp_path: Path) -> None:
    with BundleReader(laid_down("parts", tmp_path)) as reader:
        assert reader.step == 7
    assert reader.tensors["words"].shape == (2,)
    with pytest.raises(CheckpointError, match="model was closed; open it again"):
        reader.read(["words"])


def test_an_empty_bundle(tmp_path: Path) -> None:
    write_bundle(tmp_path / "none", {})
    with BundleReader(tmp_path / "none") as reader:
        reader.verify()
        assert reader.read() == {}


def test_files_are_opened_when_tensors_of_them_are_read(tmp_path: Path) -> None:
    prefix = laid_down("parts", tmp_path)
    (tmp_path / "model.data-00001-of-00002").unlink()
    with BundleReader(prefix) as reader:
        assert reader.read(["rows/table"])["rows/table"].shape == (7, 3)
        with pytest.raises(CheckpointNotFoundError, match=r"data-00001-of-00002 .* not there"):
            reader.read(["words"])
        with pytest.raises(CheckpointError, match=r"damaged:\n  the file [^\n]*is not there$"):
            reader.verify()


@pytest.mark.parametrize("ending", ["", ".index", ".data-00000-of-00002", ".data-00001-of-00002"])
def test_any_file_names_its_bundle(ending: str, tmp_path: Path) -> None:
    prefix = laid_down("parts", tmp_path)
    with open_checkpoint(prefix + ending) as reader:
        assert reader.path == Path(prefix)
        assert reader.read(["global_step"])["global_step"] == 7


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (0, "80"), (63, "bf"), (64, "c040"), (-1, "7f"), (-64, "40"), (-65, "3fbf"),
        (8191, "dfff"), (8192, "e02000"), (2**62, "ffc0" + "40" + "00" * 7),
    ],
)  # fmt: skip
def test_places_of_parts_are_coded_in_order(number: int, code: str) -> None:
    # The code of https://github.com/google/orderedcode; its tests have these and like values.
    key = Part((number,), (1,)).key(b"a\0b")
    assert key.hex() == "00" + "6100ff62" + "0001" + "0101" + code + "81"


# -- damage


def test_no_damaged_byte_of_the_index_goes_unnoticed(tmp_path: Path) -> None:
    prefix = laid_down("parts", tmp_path)
    index = Path(f"{prefix}.index")
    sound = index.read_bytes()
    with BundleReader(prefix) as reader:
        expected = dict(reader.tensors)
    # What nobody reads: the block of other blocks, which is empty, and parts of the footer.
    others, place = read_varint(sound, len(sound) - FOOTER_BYTES)
    others_bytes, _ = read_varint(sound, place)
    unread = {*range(others, others + others_bytes + TRAILER_BYTES)}
    unread |= {*range(len(sound) - FOOTER_BYTES, len(sound) - 8)}
    for place in range(0, len(sound), 3):
        index.write_bytes(sound[:place] + bytes([sound[place] ^ 0x55]) + sound[place + 1 :])
        try:
            with BundleReader(prefix) as reader:
                assert dict(reader.tensors) == expected
                assert place in unread
        except (DataLossError, UnimplementedError):
            continue


@pytest.mark.parametrize("kind", KINDS)
def test_an_index_that_is_cut_short(kind: str, tmp_path: Path) -> None:
    prefix = laid_down(kind, tmp_path)
    index = Path(f"{prefix}.index")
    sound = index.read_bytes()
    for size in [*range(0, len(sound), 37), len(sound) - 1]:
        index.write_bytes(sound[:size])
        with pytest.raises(CheckpointDamagedError, match=r"model\.index is damaged, or no index"):
            BundleReader(prefix)


def test_damaged_tensors_are_named(tmp_path: Path) -> None:
    prefix = laid_down("everything", tmp_path)
    data = Path(f"{prefix}.data-00000-of-00001")
    sound = data.read_bytes()
    data.write_bytes(bytes(byte ^ 0xFF for byte in sound))
    with BundleReader(prefix) as reader:
        for name, stored in reader.tensors.items():
            if stored.nbytes and not (stored.dtype == "string" and 0 in stored.shape):
                with pytest.raises(CheckpointDamagedError, match=re.escape(f"tensor {name!r}: ")):
                    reader.read([name])
        with pytest.raises(CheckpointDamagedError, match=r"is damaged:\n  tensor .*: its che"):
            reader.verify()
    data.write_bytes(sound[:-1])
    with BundleReader(prefix) as reader:
        last = max(reader.stored, key=lambda stored: stored.offset + stored.nbytes)
        with pytest.raises(CheckpointDamagedError, match=rf"{len(sound) - 1} bytes, expected"):
            reader.read([last.name])


def test_every_byte_of_the_strings_counts(tmp_path: Path) -> None:
    prefix = laid_down("everything", tmp_path)
    data = Path(f"{prefix}.data-00000-of-00001")
    sound = data.read_bytes()
    with BundleReader(prefix) as reader:
        stored = reader.tensors["string/many"]
    for place in range(stored.offset, stored.offset + stored.nbytes, 3):
        data.write_bytes(sound[:place] + bytes([sound[place] ^ 0x81]) + sound[place + 1 :])
        with BundleReader(prefix) as reader, pytest.raises(DataLossError, match="string/many"):
            reader.read(["string/many"])


# -- indices whose checksums are right, and that lie

_KEY_0 = Part((0,), (2,)).key(b"t")
_KEY_1 = Part((1,), (2,)).key(b"t")
_KEY_2 = Part((2,), (2,)).key(b"t")
_LIES: list[tuple[dict[bytes, bytes], str]] = [
    ({b"t": entry(b"abc", shape=(4,))}, "'t', uint8[4], has 3 bytes, expected 4"),
    ({b"t": entry(b"", shape=(1 << 40, 1 << 40))}, "has 0 bytes, expected 1208925819614629174706"),
    ({b"t": entry(shape=(-1,))}, "'t' has the shape [-1]"),
    ({b"t": entry(shape=(1,) * 33, size=1)}, "'t' has the shape [1, 1, "),
    ({b"t": entry(b"a", offset=-1)}, "lies at -1 of file 0"),
    ({b"t": entry(size=-1)}, "with -1 bytes"),
    ({b"t": entry(b"a", shard_id=1)}, "lies at 0 of file 1"),
    ({b"t": entry(b"a", shard_id=-1)}, "lies at 0 of file -1"),
    ({b"t": entry(b"a"), b"u": entry(b"a")}, "the tensors 't' and 'u' overlap"),
    ({b"t": b"\xff\xff"}, "the entry b't' is no serialized BundleEntryProto"),
    ({b"\xff": entry(b"a")}, "can't decode byte 0xff"),
    ({_KEY_0: entry(b"ab", shape=(2,))}, "belongs to no tensor"),
    ({b"t": parts((2,), [(0, 2)])}, "the part (0,) of 't' is not there"),
    ({b"t": parts((2,), [(1, 2)])}, "the part 1:3 does not lie within 0:2"),
    ({b"t": parts((2, 1), [(0, 2)])}, "a part of 1 dimensions is none of shape (2, 1)"),
    (
        {_KEY_0: entry(b"ab", shape=(2,)), b"t": parts((1 << 50,), [(0, 2)])},
        "tensor 't': its parts have 2 elements, expected 1125899906842624",
    ),
    (
        {
            _KEY_0: entry(b"ab", shape=(2,)),
            _KEY_1: entry(b"cd", shape=(2,), offset=2),
            b"t": parts((4,), [(0, 2)], [(1, 2)]),
        },
        "tensor 't': its parts overlap",
    ),
    (
        {
            _KEY_0: entry(b"ab", shape=(2,)),
            _KEY_2: entry(b"cd", shape=(2,), offset=1),
            b"t": parts((4,), [(0, 2)], [(2, 2)]),
        },
        "the tensors 't' and 't' overlap",
    ),
    (
        {_KEY_0: entry(b"ab", shape=(2,)), b"t": parts((2,), [(0, 2)], dtype=6)},
        "the part (0,) of 't' is uint8[2]",
    ),
    (
        {_KEY_0: entry(b"ab", shape=(2, 1)), b"t": parts((2,), [(0, 2)])},
        "the part (0,) of 't' is uint8[2, 1]",
    ),
    ({b"u": entry(b"a"), b"t": entry(b"b", offset=1)}, "the keys b'u' and b't' are out of order"),
]


@pytest.mark.parametrize(("entries", "message"), _LIES, ids=range(len(_LIES)))
def test_an_index_that_contradicts_itself(
    entries: dict[bytes, bytes], message: str, tmp_path: Path
) -> None:
    prefix = made_to_order(tmp_path, entries, b"abcd")
    with pytest.raises(CheckpointDamagedError, match=re.escape(message)):
        BundleReader(prefix)


@pytest.mark.parametrize(
    ("head", "kind", "message"),
    [
        (header(endianness=1), UnimplementedError, "the other order of bytes"),
        (header(version={"min_consumer": 2}), UnimplementedError, "of version 2 or later"),
        (header(version={"bad_consumers": [1]}), UnimplementedError, "this is version 1"),
        (header(num_shards=0), CheckpointDamagedError, "it names 0 files"),
        (header(num_shards=-5), CheckpointDamagedError, "it names -5 files"),
        (b"\xff", CheckpointDamagedError, "its header is no serialized BundleHeaderProto"),
    ],
)
def test_headers_that_are_refused(
    head: bytes, kind: type[Exception], message: str, tmp_path: Path
) -> None:
    prefix = made_to_order(tmp_path, {b"t": entry(b"a")}, b"a", head)
    with pytest.raises(kind, match=message):
        BundleReader(prefix)


@pytest.mark.parametrize(
    ("stored", "data", "message"),
    [
        (entry(b"a", dtype=10, shape=(1,)), b"a", "bytes other than 0 and 1"),
        (entry(b"abcd", dtype=7, shape=(9,)), b"abcd", "4 bytes cannot be 9 strings"),
        (entry(b"\xff" * 20, dtype=7), b"\xff" * 20, "a number has more than 64 bits"),
        (entry(b"\x80", dtype=7), b"\x80", "a number is cut short"),
        (entry(b"\x01", dtype=7), b"\x01", "checksum of the strings' lengths"),
        (entry(size=1 << 60, shape=(1 << 60,)), b"abc", "has 3 bytes, expected 11529215046068469"),
    ],
)  # fmt: skip
def test_tensors_that_are_not_what_the_index_says(
    stored: bytes, data: bytes, message: str, tmp_path: Path
) -> None:
    with (
        BundleReader(made_to_order(tmp_path, {b"t": stored}, data)) as reader,
        pytest.raises(CheckpointDamagedError, match=message),
    ):
        reader.read()


def test_types_that_headrace_lacks_are_listed_and_refused(tmp_path: Path) -> None:
    entries = {b"t": entry(b"ab", dtype=21), b"u": entry(b"c", offset=2)}
    with BundleReader(made_to_order(tmp_path, entries, b"abc")) as reader:
        assert reader.tensors["t"].dtype == "variant"
        reader.verify()
        assert reader.read(["u"])["u"] == ord("c")
        with pytest.raises(UnimplementedError, match=r"'t' of .* of TensorFlow's type variant"):
            reader.read()


# -- compressed blocks


def compressed_index(prefix: str) -> bytes:
    """Return the index of a bundle with its blocks compressed."""
    from cramjam import snappy

    with Path(f"{prefix}.index").open("rb") as stream:
        entries = list(read_table(stream, "it"))
    block = b"".join(varint(0) + varint(len(k)) + varint(len(v)) + k + v for k, v in entries)

    def framed(content: bytes) -> bytes:
        data = bytes(snappy.compress_raw(content)) + b"\1"
        return data + struct.pack("<I", masked(extend_crc32c(0, data)))

    data = framed(block + struct.pack("<II", 0, 1))
    handle = varint(0) + varint(len(data) - 5)
    index = framed(
        b"\0" + varint(1) + varint(len(handle)) + b"~" + handle + struct.pack("<II", 0, 1)
    )
    footer = varint(0) + varint(0) + varint(len(data)) + varint(len(index) - 5)
    return data + index + footer.ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57)


def test_compressed_blocks_are_read(tmp_path: Path) -> None:
    pytest.importorskip("cramjam")
    prefix = laid_down("everything", tmp_path)
    with BundleReader(prefix) as reader:
        expected = dict(reader.tensors)
    Path(f"{prefix}.index").write_bytes(compressed_index(prefix))
    with BundleReader(prefix) as reader:
        assert dict(reader.tensors) == expected


def snappy_block(folder: Path, content: bytes) -> str:
    """Write an index of one block that says it is compressed."""
    data = content + b"\1"
    data += struct.pack("<I", masked(extend_crc32c(0, data)))
    footer = varint(0) + varint(0) + varint(0) + varint(len(content))
    whole = data + footer.ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57)
    (folder / "odd.index").write_bytes(whole)
    return str(folder / "odd")


def test_without_the_library_it_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "cramjam", None)
    with pytest.raises(UnimplementedError, match=r"pip install 'headrace-train\[snappy\]'"):
        BundleReader(snappy_block(tmp_path, b"\x02\x04ab"))


def test_a_block_that_claims_to_be_huge_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointDamagedError, match="9 compressed bytes claim to be 108086391"):
        BundleReader(snappy_block(tmp_path, varint(1 << 60)[:8] + b"\x0f"))


def test_compressed_bytes_that_make_no_sense(tmp_path: Path) -> None:
    pytest.importorskip("cramjam")
    with pytest.raises(CheckpointDamagedError, match="its compressed bytes make no sense"):
        BundleReader(snappy_block(tmp_path, b"\x08zzzzzz"))


# -- what cannot be written, and what is no bundle


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"": 1}, "'': a name has at least one character"),
        ({"\0a": 1}, "the first not 0"),
        ({"\ud800": 1, "a": object()}, r"2 of 2 tensors cannot be stored:\n.*surrogates not all"),
        ({"a": np.array([1, b"x"], object)}, "'a': a int cannot be stored"),
        ({"a": np.zeros(1, "datetime64[s]")}, "'a': .*M8"),
    ],
)
def test_what_cannot_be_written(tensors: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=message):
        write_bundle(tmp_path / "model", tensors)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"could not be written: .*No such file"):
        write_bundle(tmp_path / "no" / "model", {"a": 1})


def test_the_first_format_is_refused(tmp_path: Path) -> None:
    prefix = laid_down("everything", tmp_path)
    # Its files are tables, too.
    Path(f"{prefix}.index").rename(tmp_path / "old")
    with pytest.raises(UnimplementedError, match="old is a checkpoint in TensorFlow's first form"):
        open_checkpoint(tmp_path / "old")


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("none", CheckpointNotFoundError, "there is no checkpoint .*neither .*none.h5, nor"),
        ("", CheckpointDamagedError, "is a folder, no checkpoint; latest_checkpoint"),
    ],
)
def test_what_is_no_checkpoint(
    name: str, kind: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(kind, match=message):
        open_checkpoint(tmp_path / name)


@pytest.mark.parametrize("value", [0, 127, 128, 300, (1 << 64) - 1])
def test_varints(value: int) -> None:
    assert read_varint(b"\0" + varint(value) + b"\7", 1) == (value, 1 + len(varint(value)))
