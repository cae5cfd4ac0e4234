"""Files of records: what is written is read, TensorFlow's files are, and damage is told."""

from __future__ import annotations

import gzip
import json
import logging
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headrace as hr
from headrace import errors
from headrace_io.fixed_length_records import read_fixed
from headrace_io.lines import read_lines
from headrace_io.records import checksum, read_records
from headrace_io.records.checksum import crc32c, masked

TABLE = json.loads((Path(__file__).parent / "tables" / "readers.json").read_text())
RECORDS = [record.encode("latin-1") for record in TABLE["records"]]
COMPRESSIONS = {"": "r", "ZLIB": "r.z", "GZIP": "r.gz"}


def write(path, records, options=None):
    with hr.io.TFRecordWriter(path, options) as writer:
        for record in records:
            writer.write(record)
    return path


# -- whole files


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_files_of_tensorflow_are_read(files, compression):
    path = files / COMPRESSIONS[compression]
    assert list(hr.python_io.tf_record_iterator(str(path), compression)) == RECORDS
    starts = [start for start, _, _ in read_records(path, compression)]
    assert starts == [0, 19, 35, 66]


def test_files_are_written_as_tensorflow_writes_them(files, tmp_path):
    assert write(tmp_path / "r", RECORDS).read_bytes() == (files / "r").read_bytes()
    plain = (files / "r").read_bytes()
    assert zlib.decompress(write(tmp_path / "z", RECORDS, "ZLIB").read_bytes()) == plain
    assert gzip.decompress(write(tmp_path / "g", RECORDS, "GZIP").read_bytes()) == plain


def test_the_checksum_is_that_of_the_rfc():
    # RFC 3720, B.4.
    assert crc32c()(bytes(32)) == 0x8A9136AA
    assert crc32c()(bytes(range(32))) == 0x46DD794E
    assert masked(0) == 0xA282EAD8
    assert masked(0xFFFFFFFF) == 0xA282EAD7


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_large_records_and_many_small_ones_are_read(tmp_path, compression):
    records = [bytes([i % 251]) * size for i, size in enumerate([0, 1, 300_000, 7, 1 << 20] * 3)]
    records += [b"%d" % i for i in range(60_000)]
    path = write(tmp_path / "many", records, compression)
    assert list(hr.io.tf_record_iterator(path, compression)) == records


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_reading_resumes_at_every_record(tmp_path, compression):
    path = write(tmp_path / "file", RECORDS, compression)
    found = list(read_records(path, compression))
    for number, (start, stop, _) in enumerate(found):
        assert list(read_records(path, compression, start=start)) == found[number:]
        assert list(read_records(path, compression, start=stop)) == found[number + 1 :]


def test_files_that_were_appended_to_are_read_to_the_end(files, tmp_path):
    for name, compression in (("r.gz", "GZIP"), ("r", None)):
        path = tmp_path / name
        path.write_bytes((files / name).read_bytes() * 3)
        assert list(hr.io.tf_record_iterator(path, compression)) == RECORDS * 3


@settings(max_examples=30, deadline=None)
@given(records=st.lists(st.binary(max_size=40), max_size=20), kind=st.sampled_from(["", "GZIP"]))
def test_any_records_come_back(tmp_path_factory, records, kind):
    path = tmp_path_factory.mktemp("any") / "file"
    assert list(hr.io.tf_record_iterator(write(path, records, kind), kind)) == records


# -- options


def test_options_are_tensorflows():
    options = hr.io.TFRecordOptions
    kinds = hr.python_io.TFRecordCompressionType
    assert (kinds.NONE, kinds.ZLIB, kinds.GZIP) == (0, 1, 2)
    for choice, expected in [(None, ""), ("", ""), (0, ""), (1, "ZLIB"), (kinds.GZIP, "GZIP")]:
        assert options.get_compression_type_string(choice) == expected
        assert options.get_compression_type_string(options(choice)) == expected
        assert options.get_compression_type_string(options(options(choice))) == expected
    for wrong in ("LZ4", 3, 1.5, options):
        with pytest.raises(ValueError, match="expected a compression: '', 'ZLIB', 'GZIP'"):
            options(wrong)


@pytest.mark.parametrize(
    "arguments",
    [
        {"compression_level": 9, "mem_level": 1, "window_bits": 10},
        {"flush_mode": zlib.Z_FULL_FLUSH, "input_buffer_size": 8, "output_buffer_size": 1},
        {"compression_strategy": zlib.Z_HUFFMAN_ONLY, "compression_method": zlib.DEFLATED},
    ],
)
def test_zlib_gets_its_options(tmp_path, arguments):
    usual = write(tmp_path / "usual", RECORDS, "ZLIB")
    path = write(tmp_path / "file", RECORDS, hr.io.TFRecordOptions("ZLIB", **arguments))
    assert list(hr.io.tf_record_iterator(path, "ZLIB")) == RECORDS
    assert path.read_bytes() != usual.read_bytes()


def test_options_that_zlib_refuses_are_refused(tmp_path):
    with pytest.raises(errors.AttributeValueError, match=r"zlib does not take .*wbits=99"):
        hr.io.TFRecordWriter(tmp_path / "file", hr.io.TFRecordOptions("GZIP", window_bits=99))


# -- writing


def test_what_is_flushed_is_read_before_the_end(tmp_path):
    for compression in COMPRESSIONS:
        path = tmp_path / f"file{compression}"
        with hr.io.TFRecordWriter(path, compression) as writer:
            writer.write(b"one")
            writer.flush()
            stream = read_records(path, compression)
            assert next(stream)[2] == b"one"


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_file_ends_where_its_writer_flushed_it(tmp_path, compression):
    path, texts = tmp_path / "file", [b"one", b"two" * 200_000, b""]
    with hr.io.TFRecordWriter(path, compression) as writer:
        assert list(hr.io.tf_record_iterator(path, compression)) == []
        for i, text in enumerate(texts):
            writer.write(text)
            writer.flush()
            assert list(hr.io.tf_record_iterator(path, compression)) == texts[: i + 1]


@pytest.mark.parametrize(("compression", "bits"), [("GZIP", 31), ("ZLIB", 15)])
def test_what_was_flushed_in_the_middle_of_a_record_is_cut_short(tmp_path, compression, bits):
    path, deflater = tmp_path / "file", zlib.compressobj(wbits=bits)
    whole = write(tmp_path / "plain", [b"one", b"two"]).read_bytes()
    path.write_bytes(deflater.compress(whole[:-1]) + deflater.flush(zlib.Z_SYNC_FLUSH))
    stream = hr.io.tf_record_iterator(path, compression)
    assert next(stream) == b"one"
    with pytest.raises(errors.DataLossError, match=r"record 1 of .* is cut short"):
        next(stream)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(errors.DataLossError, match=rf"cut short: its {compression} data end early"):
        list(hr.io.tf_record_iterator(path, compression))


def test_a_closed_writer_takes_nothing_more(tmp_path):
    writer = hr.io.TFRecordWriter(tmp_path / "file")
    writer.close()
    writer.close()
    for use in (lambda: writer.write(b""), writer.flush):
        with pytest.raises(errors.FailedPreconditionError, match="is closed: it takes no more"):
            use()


def test_records_are_bytes(tmp_path):
    with hr.io.TFRecordWriter(tmp_path / "file") as writer:
        for wrong in ("text", 3, None):
            with pytest.raises(TypeError, match="a record is bytes, got"):
                writer.write(wrong)


def test_files_that_cannot_be_opened_say_so(tmp_path):
    with pytest.raises(errors.FailedPreconditionError, match=r"cannot write .*: Is a directory"):
        hr.io.TFRecordWriter(tmp_path)
    with pytest.raises(errors.NotFoundError, match=r"cannot write .*: No such file"):
        hr.io.TFRecordWriter(tmp_path / "no" / "file")
    with pytest.raises(errors.NotFoundError, match=r"cannot read .*: No such file"):
        next(hr.io.tf_record_iterator(tmp_path / "file"))
    with pytest.raises(errors.FailedPreconditionError, match=r"cannot read .*: Is a directory"):
        next(hr.io.tf_record_iterator(tmp_path))


# -- damage


def test_every_damaged_byte_is_found(files, tmp_path):
    whole = (files / "r").read_bytes()[:66]
    ends = [0, 19, 35, 66]
    path = tmp_path / "damaged"
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        number = sum(end <= place for end in ends) - 1
        read = hr.io.tf_record_iterator(path)
        assert [next(read) for _ in range(number)] == RECORDS[:number]
        message = rf"record {number} of '.*damaged', at byte {ends[number]}, is (damaged|cut short)"
        with pytest.raises(errors.DataLossError, match=message):
            next(read)


@pytest.mark.parametrize("byte", [0, 7, 8, 11, 12, 40, 51, 52, 55])
@pytest.mark.parametrize("number", [0, 1, 7, 19])
def test_records_of_one_length_are_checked_each(tmp_path, number, byte):
    records = [bytes([number]) * 40 for number in range(20)]
    path = write(tmp_path / "r", records)
    framed = bytearray(path.read_bytes())
    framed[number * 56 + byte] ^= 4
    path.write_bytes(framed)
    found = []
    where = f"record {number} of '{path}', at byte {number * 56}, is (damaged|cut short)"
    with pytest.raises(errors.DataLossError, match=where):
        found.extend(record for _, _, record in read_records(path))
    assert found == records[:number]
    kept = [record for _, _, record in read_records(path, ignore_errors=True)]
    # Behind a damaged length nothing can be found.
    assert kept == (records[:number] + records[number + 1 :] if byte >= 12 else records[:number])


@pytest.fixture
def together(monkeypatch):
    """Have all records of one length checked together, as soon as there are two."""
    monkeypatch.setattr(checksum, "_FROM", 0)
    monkeypatch.setattr(checksum, "_seen", {})
    monkeypatch.setattr(checksum, "_checks", {})
    monkeypatch.setattr("headrace_io.records.reading._MANY", 2)


@pytest.mark.parametrize("byte", [0, 8, 12, 51, 52, 55])
@pytest.mark.parametrize("number", [0, 1, 19])
@pytest.mark.usefixtures("together")
def test_records_that_are_checked_together_are_checked_each(tmp_path, number, byte):
    test_records_of_one_length_are_checked_each(tmp_path, number, byte)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_many_checksums_at_once_are_right_where_each_is(data):
    length = data.draw(st.sampled_from([0, 1, 7, 40, 300]))
    most = data.draw(st.integers(1, 9))
    some = data.draw(st.lists(st.binary(min_size=length, max_size=length), min_size=1))[:most]
    head = struct.pack("<Q", length)
    head += struct.pack("<I", masked(crc32c()(head)))
    framed = [head + one + struct.pack("<I", masked(crc32c()(one))) for one in some]
    check = checksum.Alike(framed[-1], most)
    whole = bytearray(b"".join(framed))
    behind = data.draw(st.binary(max_size=20))

    def right():
        size = length + 16
        stored = np.ndarray((len(some),), "<u4", bytes(whole), size - 4, (size,))
        alone = check.right(bytes(whole), stored)
        assert check.right(bytes(whole) + behind, stored, behind) == alone
        return alone

    assert right()
    # One record is damaged, in any way.
    number = data.draw(st.integers(0, len(some) - 1)) * (length + 16)
    for place in data.draw(st.sets(st.integers(12, length + 15), min_size=1)):
        whole[number + place] ^= data.draw(st.integers(1, 255))
    begin, end = number + 12, number + 12 + length
    (stored,) = struct.unpack_from("<I", whole, end)
    assert right() == (masked(crc32c()(bytes(whole[begin:end]))) == stored)


def test_records_of_any_lengths_are_read_with_their_places(tmp_path, together):
    lengths = [3] * 5 + [0] * 4 + [3, 4, 4, 9] + [70_000] * 9 + [1] * 3000 + [2]
    records = [bytes([number % 251]) * length for number, length in enumerate(lengths)]
    begins = np.cumsum([0, *(length + 16 for length in lengths)]).tolist()
    path = write(tmp_path / "r", records)
    found = list(read_records(path))
    assert found == list(zip(begins, begins[1:], records, strict=False))
    assert list(read_records(path, start=begins[20])) == found[20:]


def test_a_file_cut_short_anywhere_is_told(files, tmp_path):
    whole = (files / "r").read_bytes()[:66]
    ends = [0, 19, 35, 66]
    path = tmp_path / "cut"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        number = sum(end <= length for end in ends) - 1
        records = hr.io.tf_record_iterator(path)
        if length in ends:
            assert list(records) == RECORDS[:number]
            continue
        left = length - ends[number]
        message = rf"record {number} of '.*cut', at byte {ends[number]}, is cut short: .* {left} b"
        assert [next(records) for _ in range(number)] == RECORDS[:number]
        with pytest.raises(errors.DataLossError, match=message):
            next(records)


@pytest.mark.parametrize("compression", ["ZLIB", "GZIP"])
def test_compressed_data_that_are_cut_short_are_told(files, tmp_path, compression):
    whole = (files / COMPRESSIONS[compression]).read_bytes()
    path = tmp_path / "cut"
    for length in range(1, len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(errors.DataLossError, match=f"cut short: its {compression} data end"):
            list(hr.io.tf_record_iterator(path, compression))


def test_what_is_not_compressed_is_told(files):
    for compression in ("ZLIB", "GZIP"):
        with pytest.raises(errors.DataLossError, match=f"is no {compression} data, or is damaged"):
            list(hr.io.tf_record_iterator(files / "r", compression))


def test_a_length_beyond_the_file_takes_no_memory(tmp_path):
    length = struct.pack("<Q", 1 << 60)
    path = tmp_path / "long"
    path.write_bytes(length + struct.pack("<I", masked(crc32c()(length))) + b"data")
    with pytest.raises(errors.DataLossError, match=r"at byte 0, is cut short: .* after 16 bytes"):
        list(hr.io.tf_record_iterator(path))


def test_damaged_records_are_left_out_where_that_is_wanted(files, tmp_path, caplog):
    whole = (files / "r").read_bytes()
    path = tmp_path / "damaged"
    # The data of the first record, and the length of the last but one.
    path.write_bytes(b"".join([whole[:13], b"?", whole[14:]]) + whole)
    with caplog.at_level(logging.WARNING, "headrace.io"):
        found = [data for _, _, data in read_records(path, ignore_errors=True)]
    assert found == RECORDS[1:] + RECORDS
    assert [r.getMessage().partition(",")[0] for r in caplog.records] == [f"record 0 of '{path}'"]
    path.write_bytes(whole + b"".join([whole[:35], b"?", whole[36:]]))
    assert [data for _, _, data in read_records(path, ignore_errors=True)] == RECORDS + RECORDS[:2]
    path.write_bytes(whole[:-1])
    assert [data for _, _, data in read_records(path, ignore_errors=True)] == RECORDS[:3]


# -- lines, and records of one length


@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_lines_are_read_and_resumed(tmp_path, compression):
    text = b"one\r\n\ntwo\rthree\n" + b"x" * 700_000 + b"\nlast\r"
    path = tmp_path / "text"
    path.write_bytes(gzip.compress(text) if compression else text)
    expected = [b"one", b"", b"two\rthree", b"x" * 700_000, b"last"]
    found = list(read_lines(path, compression))
    assert [line for _, _, line in found] == expected
    for number, (start, stop, _) in enumerate(found):
        assert list(read_lines(path, compression, start=start)) == found[number:]
        assert list(read_lines(path, compression, start=stop)) == found[number + 1 :]
    assert [line for _, _, line in read_lines(path, compression, skip_header_lines=3)] == expected[
        3:
    ]
    assert list(read_lines(path, compression, skip_header_lines=9)) == []


@settings(max_examples=60, deadline=None)
@given(
    size=st.integers(0, 60),
    record=st.integers(1, 9),
    header=st.integers(0, 9),
    footer=st.integers(0, 9),
    hop=st.integers(0, 14),
    compressed=st.booleans(),
)
def test_records_of_one_length_are_slices(
    tmp_path_factory, size, record, header, footer, hop, compressed
):
    data = bytes(range(size))
    path = tmp_path_factory.mktemp("fixed") / "file"
    path.write_bytes(zlib.compress(data) if compressed else data)
    step = hop or record
    starts = range(header, size - footer - record + 1, step)
    expected = [(i, i + step, data[i : i + record]) for i in starts]
    found = list(read_fixed(path, record, header, footer, hop, "ZLIB" if compressed else ""))
    assert found == expected
    for number, (start, _, _) in enumerate(found):
        again = read_fixed(
            path, record, header, footer, hop, "ZLIB" if compressed else "", start=start
        )
        assert list(again) == expected[number:]
