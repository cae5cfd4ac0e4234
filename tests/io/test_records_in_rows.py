"""Records that go from readers to parsers and decoders as rows of bytes: the same comes out."""

from __future__ import annotations

import importlib
import os
from pathlib import Path

import numpy as np
import pytest

import headrace as hr
from headrace import errors
from headrace.extend.kernels import StringRows, rows_of
from headrace.extend.passes import extract
from headrace_io.records.reading import read_runs
from headrace_io.unused_outputs import spare_unlooked

pytestmark = pytest.mark.needs("backend-cpu", "train")


def example(image: bytes, label: int) -> bytes:
    feature = {
        "image": hr.train.Feature(bytes_list=hr.train.BytesList(value=[image])),
        "label": hr.train.Feature(int64_list=hr.train.Int64List(value=[label])),
    }
    made: bytes = hr.train.Example(features=hr.train.Features(feature=feature)).SerializeToString()
    return made


def images(count: int) -> list[bytes]:
    return [bytes([n % 251, (n * 7) % 251, n % 3, 5] * 3) for n in range(count)]


def write(path: Path, records: list[bytes]) -> str:
    with hr.python_io.TFRecordWriter(str(path)) as writer:
        for record in records:
            writer.write(record)
    return str(path)


def work(session, names):
    queue = hr.FIFOQueue(50, hr.string, [[]])
    session.run(queue.enqueue_many([[os.fsencode(name) for name in names]]))
    session.run(queue.close())
    return queue


def parsed(records):
    features = {
        "image": hr.FixedLenFeature([], hr.string),
        "label": hr.FixedLenFeature([], hr.int64),
    }
    return hr.parse_example(records, features)


def all_of(session, fetches):
    found = []
    while True:
        try:
            found.append(session.run(fetches))
        except errors.OutOfRangeError:
            return found


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("limit", [1, 7, 100, 5000])
def test_examples_of_one_layout_come_out_once_and_in_order(tmp_path, optimize, limit):
    count = 700
    given = images(count)
    whole = [example(image, n % 100) for n, image in enumerate(given)]
    names = [write(tmp_path / "a", whole[:450]), write(tmp_path / "b", whole[450:])]
    with hr.Session(config=hr.Config(optimize=optimize)) as session:
        reader = hr.TFRecordReader()
        _, records = reader.read_up_to(work(session, names), limit)
        values = parsed(records)
        pixels = hr.decode_raw(values["image"], hr.uint8)
        found = all_of(session, [pixels, values["label"]])
        assert session.run(reader.num_records_produced()) == count
    assert b"".join(part[0].tobytes() for part in found) == b"".join(given)
    assert [n for part in found for n in part[1].tolist()] == [n % 100 for n in range(count)]
    assert found[0][0].flags.writeable


def assigned(pixels):
    kept = hr.Variable(hr.zeros([12], pixels.dtype), validate_shape=False, name="kept")
    return hr.assign(kept, pixels, validate_shape=False)


# What becomes of decoded bytes, which lie where they were read: in headrace, and in NumPy.
USES = {
    "as they are": (lambda p: p, lambda p: p),
    "cast and scaled": (lambda p: hr.cast(p, hr.float32) * 2.0, lambda p: p.astype("f4") * 2),
    "reshaped": (lambda p: hr.reshape(p, [-1, 2, 6]), lambda p: p.reshape(-1, 2, 6)),
    "turned": (hr.transpose, np.transpose),
    "cut and joined": (
        lambda p: hr.concat([p[:, 1:], p[:, :1]], 1),
        lambda p: np.concatenate([p[:, 1:], p[:, :1]], 1),
    ),
    "summed": (
        lambda p: hr.reduce_sum(hr.cast(p, hr.int32), 1),
        lambda p: p.astype("i4").sum(1),
    ),
    "of Python's": (lambda p: hr.py_func(np.flip, [p], p.dtype), np.flip),
    "kept": (assigned, lambda p: p),
}


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("dtype", [hr.uint8, hr.int8], ids=str)
@pytest.mark.parametrize("use", USES)
def test_decoded_bytes_are_what_they_would_be_by_themselves(tmp_path, use, dtype, optimize):
    given = images(200)
    name = write(tmp_path / "a", [example(image, 1) for image in given])
    ours, theirs = USES[use]
    with hr.Session(config=hr.Config(optimize=optimize)) as session:
        _, records = hr.TFRecordReader().read_up_to(work(session, [name]), 40)
        made = ours(hr.decode_raw(parsed(records)["image"], dtype))
        found = all_of(session, made)
    parts = [given[i : i + 40] for i in range(0, 200, 40)]
    for value, part in zip(found, parts, strict=True):
        expected = theirs(np.frombuffer(b"".join(part), dtype.numpy).reshape(len(part), -1))
        np.testing.assert_array_equal(value, expected)
        assert value.flags.owndata


@pytest.mark.parametrize("optimize", [True, False])
def test_examples_that_differ_in_length_come_out_too(tmp_path, optimize):
    # The labels take one byte or two.
    given = images(300)
    name = write(tmp_path / "a", [example(image, n) for n, image in enumerate(given)])
    with hr.Session(config=hr.Config(optimize=optimize)) as session:
        _, records = hr.TFRecordReader().read_up_to(work(session, [name]), 60)
        values = parsed(records)
        found = all_of(session, [hr.decode_raw(values["image"], hr.uint8), values["label"]])
    assert b"".join(part[0].tobytes() for part in found) == b"".join(given)
    assert [n for part in found for n in part[1].tolist()] == list(range(300))


def test_what_others_look_at_is_there(tmp_path):
    given = images(90)
    whole = [example(image, 1) for image in given]
    name = write(tmp_path / "a", whole)
    with hr.Session() as session:
        keys, records = hr.TFRecordReader().read_up_to(work(session, [name]), 60)
        values = parsed(records)
        pixels = hr.decode_raw(values["image"], hr.uint8)
        found = all_of(session, [keys, records, values["image"], pixels])
    size = 16 + len(whole[0])
    expected = [b"%b:%d" % (os.fsencode(name), n * size) for n in range(90)]
    assert [key for part in found for key in part[0]] == expected
    assert [record for part in found for record in part[1]] == whole
    assert [image for part in found for image in part[2]] == given
    assert b"".join(part[3].tobytes() for part in found) == b"".join(given)


@pytest.mark.parametrize("hop", [0, 2, 9])
def test_records_of_one_length_are_decoded_as_they_stand(tmp_path, hop):
    content = bytes(range(200))
    (tmp_path / "a").write_bytes(content)
    with hr.Session() as session:
        reader = hr.FixedLengthRecordReader(4, 3, 1, hop)
        _, records = reader.read_up_to(work(session, [tmp_path / "a"]), 11)
        found = all_of(session, hr.decode_raw(records, hr.uint16, little_endian=False))
    step = hop or 4
    rows = [content[at : at + 4] for at in range(3, 200 - 4, step)]
    np.testing.assert_array_equal(
        np.concatenate(found), np.frombuffer(b"".join(rows), ">u2").reshape(-1, 2)
    )


def test_lines_have_their_numbers_where_somebody_looks(tmp_path):
    (tmp_path / "a").write_bytes(b"x\n" + b"".join(b"%d,%d\r\n" % (n, -n) for n in range(50)))
    with hr.Session() as session:
        keys, lines = hr.TextLineReader(1).read_up_to(work(session, [tmp_path / "a"]), 20)
        first, second = hr.decode_csv(lines, [[0], [0]])
        found = all_of(session, [keys, first, second])
    name = os.fsencode(tmp_path / "a")
    expected = [b"%b:%d" % (name, n + 2) for n in range(50)]
    assert [key for part in found for key in part[0]] == expected
    for i, sign in ((1, 1), (2, -1)):
        assert [n for part in found for n in part[i].tolist()] == [sign * n for n in range(50)]


def test_a_damaged_record_is_told_after_those_before_it(tmp_path):
    name = write(tmp_path / "a", [example(image, 1) for image in images(80)])
    content = bytearray(Path(name).read_bytes())
    size = len(content) // 80
    content[50 * size + 20] ^= 1
    Path(name).write_bytes(content)
    with hr.Session() as session:
        reader = hr.TFRecordReader()
        _, records = reader.read_up_to(work(session, [name]), 40)
        pixels = hr.decode_raw(parsed(records)["image"], hr.uint8)
        assert [len(session.run(pixels)) for _ in range(2)] == [40, 10]
        message = rf"record 50 of '.*a', at byte {50 * size}, is damaged"
        for _ in range(2):
            with pytest.raises(errors.DataLossError, match=message):
                session.run(pixels)
        assert session.run(reader.num_records_produced()) == 50


def test_a_wrong_feature_is_told_with_its_example(tmp_path):
    name = write(tmp_path / "a", [example(b"abc", 1)] * 40)
    with hr.Session() as session:
        _, records = hr.TFRecordReader().read_up_to(work(session, [name]), 40)
        values = hr.parse_example(records, {"image": hr.FixedLenFeature([], hr.int64)})
        with pytest.raises(errors.InvalidArgumentError, match="'image' of example 0 holds strings"):
            session.run(values)
    with hr.Session() as session:
        _, records = hr.TFRecordReader().read_up_to(work(session, [name]), 40)
        pixels = hr.decode_raw(parsed(records)["image"], hr.int16)
        with pytest.raises(errors.InvalidArgumentError, match="3 bytes are no whole number of"):
            session.run(pixels)


def test_rows_are_taken_only_where_all_that_read_them_do():
    queue = hr.FIFOQueue(50, hr.string, [[]])
    with hr.device("/cpu:0"):
        elsewhere = hr.TFRecordReader().read_up_to(queue, 5)[1]
    keys, records = hr.TFRecordReader().read_up_to(queue, 5)
    image = parsed(records)["image"]
    pixels = hr.decode_raw(image, hr.uint8)

    def attributes(fetches):
        step = extract([], fetches, [])
        made = spare_unlooked(step, None)
        return {op.type: op.attrs for op in made.graph.operations}

    found = attributes([pixels])
    assert found["ReaderReadUpTo"]["in_rows"]
    assert not found["ReaderReadUpTo"]["keyed"]
    assert found["ParseExample"]["in_rows"] == ("image",)
    found = attributes([pixels, keys, image])
    assert found["ReaderReadUpTo"]["keyed"]
    assert found["ParseExample"]["in_rows"] == ()
    assert not attributes([pixels, records])["ReaderReadUpTo"]["in_rows"]
    # What crosses devices is of the usual kind.
    assert not attributes([hr.decode_raw(elsewhere, hr.uint8)])["ReaderReadUpTo"]["in_rows"]


def test_rows_are_strings_for_all_others():
    rows = StringRows(np.frombuffer(b"abcdef", np.uint8).reshape(3, 2))
    assert rows.shape == (3,)
    assert np.asarray(rows).tolist() == np.asarray(rows, object).tolist() == [b"ab", b"cd", b"ef"]
    assert rows_of(rows) is rows.rows
    assert rows_of(np.asarray(rows)) is None
    assert StringRows(np.empty((2, 0), np.uint8)).tolist() == [b"", b""]


def lacking(label: int, image: bytes) -> bytes:
    """Return an example as long as those of ``example``, whose image has another name."""
    return example(image, label).replace(b"image", b"imago")


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("where", [0, 44, 45, 99])
def test_one_that_lacks_a_feature_is_told_of_when_it_is_read(tmp_path, where, optimize):
    # All are read and looked at together, and handed out by nine.
    whole = [example(image, n) for n, image in enumerate(images(100))]
    whole[where] = lacking(where, images(100)[where])
    name = write(tmp_path / "a", whole)
    found, told = [], []
    with hr.Session(config=hr.Config(optimize=optimize)) as session:
        _, records = hr.TFRecordReader().read_up_to(work(session, [name]), 9)
        labels = parsed(records)
        for _ in range(12):
            try:
                found += session.run([labels["image"], labels["label"]])[1].tolist()
            except errors.InvalidArgumentError as error:
                told.append(str(error))
    first = where - where % 9
    assert found == [n for n in range(100) if not first <= n < first + 9]
    (text,) = told
    assert f"example {where % 9} has no feature 'image'" in text


def test_features_of_floats_and_defaults_come_out_by_parts(tmp_path):
    def floats(n, *, there):
        feature = {"x": hr.train.Feature(float_list=hr.train.FloatList(value=[n, n + 0.5]))}
        if there:
            feature["y"] = hr.train.Feature(int64_list=hr.train.Int64List(value=[n]))
        return hr.train.Example(features=hr.train.Features(feature=feature)).SerializeToString()

    for there in (True, False):
        name = write(tmp_path / f"a{there}", [floats(n, there=there) for n in range(90)])
        features = {
            "x": hr.FixedLenFeature([2], hr.float32),
            "y": hr.FixedLenFeature([], hr.int64, 7),
        }
        with hr.Session() as session:
            _, records = hr.TFRecordReader().read_up_to(work(session, [name]), 40)
            values = hr.parse_example(records, features)
            only_x = hr.parse_example(records, {"x": features["x"]})["x"]
            found = all_of(session, [values["x"], values["y"], only_x])
        x, y, again = (np.concatenate(parts) for parts in zip(*found, strict=True))
        np.testing.assert_array_equal(x, np.arange(90)[:, None] + np.array([0, 0.5]))
        np.testing.assert_array_equal(again, x)
        np.testing.assert_array_equal(y, np.arange(90) if there else np.full(90, 7))
        assert [len(part[0]) for part in found] == [40, 40, 10]


class TestParts:
    """What is made of rows that were read together is made once."""

    rows = np.arange(60, dtype=np.uint8).reshape(20, 3)

    def test_parts_of_parts_know_the_whole(self):
        whole = StringRows(self.rows)
        part = whole.part(4, 16).part(2, 5)
        assert part.tolist() == whole.tolist()[6:9]
        assert len(part) == part.size == 3
        calls = []

        def make(strings):
            calls.append(len(strings))
            return [strings.rows[:, 0].astype(np.int64), StringRows(strings.rows[:, 1:])]

        whose = (object(), object())
        for _ in range(2):
            numbers, rest = part.made_together(whose, make)
            assert numbers.tolist() == [18, 21, 24]
            assert numbers.flags.owndata
            numbers[:] = 0
            assert rest.tolist() == [bytes([n + 1, n + 2]) for n in (18, 21, 24)]
        assert calls == [20]
        assert part.made_together(whose[:1], make) is not None
        assert calls == [20, 20]

    @pytest.mark.parametrize("refuses", [True, False])
    def test_what_fails_for_all_is_not_tried_again(self, refuses):
        calls = []

        def make(strings):
            calls.append(len(strings))
            if not refuses:
                raise ValueError("not alike")

        part, whose = StringRows(self.rows).part(0, 5), (object(),)
        assert part.made_together(whose, make) is None
        assert part.made_together(whose, make) is None
        assert calls == [20]

    def test_what_is_no_part_of_more_is_left_to_its_taker(self):
        def make(strings):
            raise AssertionError("called")

        whole = StringRows(self.rows)
        assert whole.made_together((object(),), make) is None
        assert whole.part(0, 20).made_together((object(),), make) is None


@pytest.mark.parametrize("size", [0, 816])
def test_records_are_read_by_whole_reads_of_the_caller(tmp_path, size):
    # Of 816 bytes each with their frames, of which 321 go into what is read of unknown records.
    name = write(tmp_path / "a", [bytes([n % 256]) * 800 for n in range(6000)])
    each, counts = 500, []

    def wanted():
        return each - sum(counts) % each, each

    for begins, data in read_runs(name, wanted=wanted, size=size):
        assert begins[-1] - begins[-2] == 816
        counts.append(len(data))
    assert sum(counts) == 6000
    whole = counts[1:] if not size else counts
    assert whole[:-1] == [2500 if size else 2179, *[2500] * (len(whole) - 2)]


def test_reads_of_many_files_share_what_is_parsed(tmp_path, monkeypatch):
    # Kernels come after the ops that they compute.
    assert callable(hr.parse_example)
    parsing = importlib.import_module("headrace_io.kernels.parsing")
    parsed_together = []
    original = parsing.taken_together

    def counted(rows, keys, label):
        parsed_together.append(len(rows))
        return original(rows, keys, label)

    monkeypatch.setattr(parsing, "taken_together", counted)
    whole = [example(image * 60, 1) for image in images(3000)]
    names = [write(tmp_path / str(i), whole) for i in range(2)]
    with hr.Session() as session:
        reader = hr.TFRecordReader()
        _, records = reader.read_up_to(work(session, names), 300)
        values = parsed(records)
        found = all_of(session, [hr.decode_raw(values["image"], hr.uint8), values["label"]])
    assert [len(part[1]) for part in found] == [300] * 20
    pixels = b"".join(part[0].tobytes() for part in found)
    assert pixels == b"".join(image * 60 for image in images(3000)) * 2
    # The first file tells how long its records are; of the second all is read and parsed at once.
    assert parsed_together[-1] > 1500
    assert len(parsed_together) <= 4
