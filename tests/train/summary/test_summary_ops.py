"""What summaries tell, against TensorFlow 1.15."""

from __future__ import annotations

import json
import logging
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

import headrace as hr
from headrace import errors
from tests.steps import run

pytestmark = pytest.mark.needs("backend-cpu")

TABLE = json.loads((Path(__file__).parent / "tables" / "summaries.json").read_text())
ROWS = {f"{row['function']}-{row['name']}": row for row in TABLE["rows"]}


def array_of(given):
    if given["dtype"] == "object":
        values = np.empty(given["shape"], object)
        values[...] = np.array(given["values"], object).reshape(given["shape"])
        return values
    # Floats stand as text, so that NaN and infinity are there, too.
    values = [float(v) if isinstance(v, str) else v for v in given["values"]]
    return np.array(values, given["dtype"]).reshape(given["shape"])


def summary_of(tensor, feeds=None):
    return hr.Summary.FromString(run(tensor, feeds))


def pixels_of(data):
    """Return the pixels of a PNG file whose rows have no filter."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        kind, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        (check,) = struct.unpack_from(">I", data, at + 8 + length)
        assert check == zlib.crc32(kind + content)
        chunks[kind], at = content, at + 12 + length
    width, height, depth, colours, *_ = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    channels = {0: 1, 2: 3, 6: 4}[colours]
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, -1)
    assert depth == 8
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, channels)


@pytest.mark.parametrize("fed", [False, True], ids=["constant", "fed"])
@pytest.mark.parametrize("name", ROWS)
def test_summaries_are_those_of_tensorflow(name, fed):
    row = ROWS[name]
    value = array_of(row["given"])
    dtype = hr.string if value.dtype == object else hr.as_dtype(value.dtype)
    if fed:
        tensor = hr.placeholder(dtype, [None] * value.ndim)
        feeds = {tensor: value}
    else:
        tensor, feeds = hr.constant(value, dtype), None
    made = getattr(hr.summary, row["function"])(row["name"], tensor, **row["kwargs"])
    assert made.op.name == row["op"]
    assert made.shape == []
    assert hr.get_collection(hr.GraphKeys.SUMMARIES) == [made]
    found = summary_of(made, feeds)
    images = []
    for part in found.value:
        if part.HasField("image"):
            pixels = pixels_of(part.image.encoded_image_string)
            images.append({"shape": list(pixels.shape), "pixels": pixels.ravel().tolist()})
            part.image.encoded_image_string = b""
    assert images == row["images"]
    assert found == hr.Summary.FromString(bytes.fromhex(row["message"]))
    assert found.SerializeToString(deterministic=True).hex() == row["message"]


def test_tags_are_scopes_and_families():
    with hr.name_scope("net"):
        first = hr.summary.scalar("loss", 1.0)
        second = hr.summary.scalar("loss", 2.0)
        third = hr.summary.scalar("loss", 3.0, family="train")
    tags = [summary_of(made).value[0].tag for made in (first, second, third)]
    assert tags == ["net/loss", "net/loss_1", "train/net/train/loss"]
    assert third.op.name == "net/train/loss"
    assert [t.op.name for t in first.op.inputs] == ["net/loss/tags", "net/loss/values"]


def test_a_name_with_illegal_characters_is_told_in_the_log(caplog):
    with caplog.at_level(logging.INFO):
        made = hr.summary.scalar("/my loss:0", 1.0)
    assert summary_of(made).value[0].tag == "my_loss_0"
    assert "Summary name /my loss:0 is illegal; using my_loss_0 instead." in caplog.text


@pytest.mark.parametrize("name", ["", "///", None], ids=["empty", "slashes", "none"])
def test_a_summary_without_a_name_is_refused(name):
    with pytest.raises(errors.AttributeValueError, match="a summary needs a name"):
        hr.summary.scalar(name, 1.0)
    with pytest.raises(errors.AttributeValueError, match="is text, got 3"):
        hr.summary.scalar(3, 1.0)


def test_a_histogram_without_a_name_has_one():
    assert summary_of(hr.summary.histogram(None, [1.0])).value[0].tag == "HistogramSummary"


def test_merge_all_finds_what_is_in_a_collection_and_a_scope():
    hr.summary.scalar("x", 1.0)
    with hr.name_scope("inner"):
        hr.summary.scalar("x", 2.0)
    other = hr.summary.scalar("other", 3.0, collections=["mine"])
    assert hr.summary.merge_all("nothing") is None
    merged = hr.summary.merge_all()
    assert merged.op.name == "Merge/MergeSummary"
    tags = {
        key: [v.tag for v in summary_of(hr.summary.merge_all(*key)).value]
        for key in [(), ("mine",), ("summaries", "inner")]
    }
    assert tags == {(): ["x", "inner/x"], ("mine",): ["other"], ("summaries", "inner"): ["inner/x"]}
    joined = hr.summary.merge([merged, other], collections=["joined"], name="my merge")
    assert joined.op.name == "my_merge/my_merge"
    assert hr.get_collection("joined") == [joined]
    assert [v.simple_value for v in summary_of(joined).value] == [1, 2, 3]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda a: [a, a], "Duplicate tag a found in summary inputs"),
        (
            lambda a: [a, hr.constant(b"junk")],
            "Could not parse one of the summary inputs: it is no serialized Summary: b'junk'",
        ),
    ],
    ids=["duplicate", "junk"],
)
def test_what_cannot_be_merged_is_refused(make, message):
    merged = hr.summary.merge(make(hr.summary.scalar("a", 1.0)))
    with pytest.raises(errors.InvalidArgumentError, match=message):
        run(merged)


@pytest.mark.parametrize("inputs", [[], "x", 3], ids=["none", "text", "number"])
def test_merging_takes_a_list(inputs):
    with pytest.raises(errors.AttributeValueError, match="a list of one summary or more"):
        hr.summary.merge(inputs)


def test_merging_one_summary_takes_a_list():
    with pytest.raises(errors.AttributeValueError, match="a list of one summary or more"):
        hr.summary.merge(hr.summary.scalar("a", 1.0))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1.0, float("nan")], "Nan in summary histogram for: h; 1 of 2 values"),
        ([[float("-inf")], [float("nan")]], "Infinity in summary histogram for: h; 2 of 2"),
    ],
    ids=["nan", "infinity"],
)
def test_a_histogram_of_what_is_not_finite_is_refused(value, message):
    with pytest.raises(errors.InvalidArgumentError, match=message):
        run(hr.summary.histogram("h", value))


def unknown(value):
    return hr.placeholder_with_default(hr.constant(value), None)


@pytest.mark.parametrize("hidden", [False, True], ids=["known", "unknown"])
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda f: hr.summary.scalar("x", f(np.ones(2))), "not the same shape: .. != .2."),
        (lambda f: hr.summary.image("x", f(np.ones((2, 3, 1), np.uint8))), "4-D tensor with last"),
        (lambda f: hr.summary.image("x", f(np.ones((1, 2, 3, 2), np.uint8))), "1, 3, or 4, got"),
        (lambda f: hr.summary.audio("x", f(np.ones(4, np.float32)), 8000), "takes a tensor .batch"),
    ],
    ids=["scalar", "rank", "channels", "sound"],
)
def test_wrong_shapes_are_refused(make, message, hidden):
    with pytest.raises(errors.InvalidArgumentError, match=message):
        run(make(unknown if hidden else hr.constant))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: hr.summary.scalar("x", True), "values must be a real number, got bool"),
        (lambda: hr.summary.histogram("x", ["a"]), "values must be a real number, got string"),
        (
            lambda: hr.summary.image("x", hr.zeros([1, 2, 2, 1], hr.int32)),
            "uint8, float16, float32",
        ),
    ],
    ids=["scalar", "histogram", "image"],
)
def test_wrong_dtypes_are_refused(make, message):
    with pytest.raises(errors.DTypeError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: hr.summary.text("x", 1), "Expected tensor .* to have dtype string"),
        (lambda: hr.summary.image("x", np.ones((1, 0, 2, 1))), "one pixel at least"),
        (
            lambda: hr.summary.image("x", np.ones((1, 2, 2, 1)), max_outputs=0),
            "must be >= 1, got 0",
        ),
        (lambda: hr.summary.audio("x", np.ones((1, 2)), 0.0), "sample_rate must be > 0"),
        (lambda: hr.summary.audio("x", np.ones((1, 2)), 8000, 0), "must be >= 1, got 0"),
    ],
    ids=["text", "pixels", "images", "rate", "sounds"],
)
def test_wrong_values_are_refused(make, message):
    with pytest.raises(errors.InvalidArgumentError, match=message):
        run(make())


def test_values_of_numpy_are_images_of_floats_as_in_tensorflow():
    made = hr.summary.image("x", np.full((1, 1, 1, 1), 5, np.uint8), max_outputs=1)
    assert pixels_of(summary_of(made).value[0].image.encoded_image_string).item() == 255


def test_a_summary_tells_of_each_step():
    x = hr.placeholder(hr.float32, [], name="x")
    made = hr.summary.scalar("x", x * 2.0)
    with hr.Session() as session:
        told = [hr.Summary.FromString(session.run(made, {x: i})).value[0] for i in range(3)]
    assert [value.simple_value for value in told] == [0, 2, 4]
