"""Parsing examples: as TensorFlow 1.15 does, and what is wrong with them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from google.protobuf.message import DecodeError  # noqa: TID253 - the package under test needs it
from hypothesis import given, settings
from hypothesis import strategies as st

import headrace as hr
from headrace import errors
from tests.steps import run

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("graph")]

ROWS = json.loads((Path(__file__).parent / "tables" / "parsing.json").read_text())["rows"]
FAMILIES = {
    "ValueError": errors.AttributeValueError,
    "TypeError": errors.DTypeError,
    "InvalidArgumentError": errors.InvalidArgumentError,
}
DTYPE_AT = {
    "FixedLenFeature": 1,
    "VarLenFeature": 0,
    "FixedLenSequenceFeature": 1,
    "SparseFeature": 2,
}


def feature(values):
    if not values:
        return hr.io.Feature()
    if isinstance(values[0], float):
        return hr.io.Feature(float_list=hr.io.FloatList(value=values))
    if isinstance(values[0], int):
        return hr.io.Feature(int64_list=hr.io.Int64List(value=values))
    return hr.io.Feature(bytes_list=hr.io.BytesList(value=values))


def example(**values):
    features = {name: feature(v) for name, v in values.items()}
    return hr.io.Example(features=hr.io.Features(feature=features)).SerializeToString()


def described(wanted):
    made = {}
    for name, (kind, *arguments) in wanted.items():
        at = DTYPE_AT[kind]
        arguments[at] = None if arguments[at] is None else hr.as_dtype(arguments[at])
        made[name] = getattr(hr, kind)(*arguments)
    return made


def check(found, expected):
    if "sparse" in expected:
        for part, values in zip(found, expected["sparse"], strict=True):
            check(part, values)
        return
    found = np.asarray(found)
    assert list(found.shape) == expected["shape"]
    values = [v.decode("latin-1") if isinstance(v, bytes) else v for v in found.ravel().tolist()]
    assert values == expected["values"]


@pytest.mark.parametrize("row", ROWS, ids=[f"{i}-{row['call']}" for i, row in enumerate(ROWS)])
def test_examples_are_parsed_as_by_tensorflow(row):
    call = getattr(hr.io, row["call"])
    given = row["serialized"]
    single = isinstance(given, str)
    data = [text.encode("latin-1") for text in ([given] if single else given)]
    serialized = hr.constant(data[0] if single else data, hr.string)
    if "error" in row:
        with pytest.raises(FAMILIES[row["error"]], match=r"feature|serialized"):
            run(call(serialized, *map(described, row["wanted"])))
        return
    tensors = call(serialized, *map(described, row["wanted"]))
    found = run(tensors)
    parts = found if isinstance(found, tuple) else [found]
    assert len(parts) == len(row["parts"])
    for part, expected in zip(parts, row["parts"], strict=True):
        assert part.keys() == expected.keys()
        for name, value in part.items():
            check(value, expected[name])


def test_static_shapes_are_known():
    serialized = hr.placeholder(hr.string, [None])
    parsed = hr.parse_example(
        serialized,
        {
            "a": hr.FixedLenFeature([2, 3], hr.int64),
            "b": hr.FixedLenSequenceFeature([4], hr.float32, True),
            "c": hr.VarLenFeature(hr.string),
        },
        name="parsed",
    )
    assert parsed["a"].shape.as_list() == [None, 2, 3]
    assert parsed["b"].shape.as_list() == [None, None, 4]
    assert parsed["c"].indices.shape.as_list() == [None, 2]
    assert parsed["a"].op.name.startswith("parsed/")


# -- bad input


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xff\xff", r"example 1 is no Example, or is damaged \(2 bytes"),
        (example(a=[1, 2])[:-1], "example 1 is no Example, or is damaged"),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "example 1 is no Example"),
        (example(), "example 1 has no feature 'a', and there is no default value"),
        (example(a=[1]), "feature 'a' of example 1 has 1 values, expected 2, for the shape"),
        (example(a=[1.0, 2.0]), "feature 'a' of example 1 holds floats, expected int64"),
        (example(a=[b"x"]), "feature 'a' of example 1 holds strings, expected int64"),
        (b"\n\x0f\n\r\n\x01a\x12\x08\x1a\x06\n\x04\x01\x80\x80\x80", "is no Example|is cut short"),
        (
            b"\n\x15\n\x13\n\x01a\x12\x0e\x1a\x0c\n\x0a" + b"\x80" * 11 + b"\x01",
            "is no Example|more than 10 bytes",
        ),
    ],
)
def test_what_is_wrong_is_told(data, message):
    parsed = hr.parse_example([example(a=[3, 4]), data], {"a": hr.FixedLenFeature([2], hr.int64)})
    with pytest.raises(errors.InvalidArgumentError, match=message):
        run(parsed)


def test_examples_are_called_by_their_names():
    parsed = hr.parse_example(
        [example()], {"a": hr.FixedLenFeature([], hr.int64)}, example_names=["first"]
    )
    with pytest.raises(errors.InvalidArgumentError, match="example 'first' has no feature 'a'"):
        run(parsed)
    parsed = hr.parse_example(
        [example()], {"a": hr.VarLenFeature(hr.int64)}, example_names=["one", "two"]
    )
    with pytest.raises(errors.InvalidArgumentError, match="are 1 examples and 2 names"):
        run(parsed)


@pytest.mark.parametrize("data", [b"\xff\xff", b"\x12\x05\x0a\x03"])
def test_damaged_sequences_are_told(data):
    parsed = hr.parse_single_sequence_example(
        data, None, {"t": hr.FixedLenSequenceFeature([], hr.int64)}
    )
    with pytest.raises(errors.InvalidArgumentError, match="the example is no SequenceExample"):
        run(parsed)


def test_steps_of_sequences_are_named_in_errors():
    lists = {"t": hr.io.FeatureList(feature=[feature([1]), feature([2, 3])])}
    made = hr.io.SequenceExample(feature_lists=hr.io.FeatureLists(feature_list=lists))
    parsed = hr.io.parse_sequence_example(
        [hr.io.SequenceExample().SerializeToString(), made.SerializeToString()],
        None,
        {"t": hr.FixedLenSequenceFeature([], hr.int64, allow_missing=True)},
    )
    message = "feature 't' of step 1 of example 1 has 2 values, expected 1"
    with pytest.raises(errors.InvalidArgumentError, match=message):
        run(parsed)


def test_something_must_be_asked_for():
    for call in (hr.parse_example, hr.parse_single_example):
        for nothing in ({}, None):
            with pytest.raises(ValueError, match="there must be features to parse"):
                call([b""], nothing)
    for call in (hr.io.parse_sequence_example, hr.parse_single_sequence_example):
        with pytest.raises(ValueError, match="there must be features or lists of features"):
            call([b""], {}, None)
    with pytest.raises(ValueError, match=r"feature 'a' must be one of FixedLenFeature, .*got 3"):
        hr.parse_example([b""], {"a": 3})
    with pytest.raises(ValueError, match="needs index_key and value_key"):
        hr.parse_example([b""], {"a": hr.SparseFeature("", "v", hr.float32, 3)})
    sparse = hr.SparseFeature("i", "v", hr.float32, 3)
    with pytest.raises(ValueError, match=r"as dense and as sparse: \['i'\]"):
        hr.parse_example([b""], {"s": sparse, "i": hr.FixedLenFeature([], hr.int64)})
    padding = hr.FixedLenSequenceFeature([], hr.int64, True, [1, 2])
    with pytest.raises(ValueError, match="what to pad with must be a scalar"):
        hr.parse_example([b""], {"a": padding})
    steps = hr.FixedLenSequenceFeature([], hr.int64, True, 1)
    with pytest.raises(ValueError, match="steps of sequences have no default value"):
        hr.parse_single_sequence_example(b"", None, {"a": steps})


def test_the_rank_is_checked():
    wanted = {"a": hr.FixedLenFeature([], hr.int64)}
    with pytest.raises(errors.ShapeError, match="serialized must be a vector"):
        hr.parse_example(b"", wanted)
    with pytest.raises(errors.ShapeError, match="serialized must be a scalar"):
        hr.parse_single_example([b""], wanted)
    fed = hr.placeholder(hr.string)
    parsed = hr.parse_example(fed, wanted)
    with hr.Session() as session, pytest.raises(errors.ShapeError, match="must be a vector"):
        session.run(parsed, {fed: b""})


# -- every example


VALUES = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5),
    st.lists(st.floats(width=32, allow_nan=False), max_size=5),
    st.lists(st.binary(max_size=200), max_size=5),
)


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.dictionaries(st.sampled_from("abc"), VALUES), min_size=1, max_size=6))
def test_what_is_written_is_parsed(rows):
    kinds = {int: hr.int64, float: hr.float32, bytes: hr.string}
    data = [example(**row) for row in rows]
    for name in "abc":
        found = {type(values[0]) for row in rows if (values := row.get(name))}
        if len(found) != 1:
            continue
        with hr.Graph().as_default():
            wanted = {name: hr.VarLenFeature(kinds[found.pop()])}
            parsed = run(hr.parse_example(data, wanted)[name])
        got = [[] for _ in rows]
        for (row, _), value in zip(parsed.indices, parsed.values.tolist(), strict=True):
            got[row].append(value)
        assert got == [row.get(name, []) for row in rows]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_examples_of_one_layout_are_parsed_as_each_by_itself(data):
    kinds = {
        "integers": st.sampled_from([128, 300, 2**14 - 1]),
        "bytes": st.integers(0, 127),
        "floats": st.floats(width=32, allow_nan=False),
        "strings": st.binary(min_size=3, max_size=3),
    }
    sizes = {name: data.draw(st.integers(0, 3), label=name) for name in kinds}
    rows = []
    for _ in range(data.draw(st.integers(2, 9))):
        drawn = {n: st.lists(kinds[n], min_size=k, max_size=k) for n, k in sizes.items()}
        rows.append({name: data.draw(values) for name, values in drawn.items()})
    # Some that are not asked for, and one row that may have another layout.
    if data.draw(st.booleans()):
        rows[data.draw(st.integers(0, len(rows) - 1))]["strings"] = [b"ab"] * sizes["strings"]
    asked = data.draw(st.sets(st.sampled_from(sorted(kinds)), min_size=1))
    dtypes = {"integers": hr.int64, "bytes": hr.int64, "floats": hr.float32, "strings": hr.string}
    with hr.Graph().as_default():
        wanted = {name: hr.VarLenFeature(dtypes[name]) for name in asked}
        parsed = run(hr.parse_example([example(**row) for row in rows], wanted))
    for name in asked:
        got = [[] for _ in rows]
        for (row, _), value in zip(parsed[name].indices, parsed[name].values.tolist(), strict=True):
            got[row].append(value)
        assert got == [row[name] for row in rows]


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_damaged_examples_never_crash(data):
    whole = example(a=[1, 300], b=[1.5, 2.5], c=[b"abc", b"d" * 130])
    place = data.draw(st.integers(0, len(whole) - 1))
    change = data.draw(st.sampled_from(["cut", "flip", "add"]))
    made = {
        "cut": whole[:place],
        "flip": whole[:place] + bytes([whole[place] ^ 1 << data.draw(st.integers(0, 7))]),
        "add": whole[:place] + data.draw(st.binary(min_size=1, max_size=3)),
    }[change] + (b"" if change == "cut" else whole[place + (change == "flip") :])
    # What Protocol Buffers read of it, if they read it.
    wanted = {
        "a": hr.VarLenFeature(hr.int64),
        "b": hr.VarLenFeature(hr.float32),
        "c": hr.VarLenFeature(hr.string),
    }
    with hr.Graph().as_default():
        parsed = hr.parse_example([whole, made], wanted)
        try:
            found = run(parsed)
        except errors.InvalidArgumentError as error:
            told = str(error)
            found = None
    if found is None:
        assert "example 1" in told
        return
    try:
        message = hr.io.Example.FromString(made)
    except DecodeError:
        # What is wrong with names or values that nobody asks for is passed over.
        return
    fields = {"a": "int64_list", "b": "float_list", "c": "bytes_list"}
    for name, field in fields.items():
        feature = message.features.feature.get(name)
        expected = [] if feature is None else list(getattr(feature, field).value)
        mine = found[name].indices[:, 0] == 1
        np.testing.assert_array_equal(
            found[name].values[mine], np.array(expected, object if name == "c" else None)
        )
