"""Fields of messages, beside what the library of Protocol Buffers reads and writes."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    ArgumentTypeError,
    AttributeValueError,
    DataLossError,
    DTypeError,
    ExecutionError,
    InvalidArgumentError,
    ShapeError,
)
from tests.steps import run

pytestmark = pytest.mark.needs("backend-cpu", "io")

# The types of fields, in the order of their numbers, and the dtypes that hold them.
TYPES: dict[str, tuple[str, ...]] = {
    "double": ("float64",),
    "float": ("float32", "float64"),
    "int64": ("int64",),
    "uint64": ("uint64",),
    "int32": ("int32", "int64"),
    "fixed64": ("uint64",),
    "fixed32": ("uint32", "uint64"),
    "bool": ("bool",),
    "string": ("string",),
    "group": ("string",),
    "message": ("string",),
    "bytes": ("string",),
    "uint32": ("uint32", "uint64"),
    "enum": ("int32",),
    "sfixed32": ("int32", "int64"),
    "sfixed64": ("int64",),
    "sint32": ("int32", "int64"),
    "sint64": ("int64",),
}
SCALARS = [name for name in TYPES if name not in ("group", "message")]
FEW = {"double": "2.5", "float": "-0.5", "bool": "true", "string": "größer", "enum": "LATE"}


@functools.cache
def files() -> Any:
    """Return a message with a field of each type, single, repeated and packed."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    made = FileDescriptorSet()
    inner = made.file.add(name="inner.proto", package="inner", syntax="proto2")
    inner.message_type.add(name="Inner").field.add(name="x", number=1, type=5, label=1)
    file = made.file.add(name="outer.proto", package="outer", syntax="proto2")
    file.dependency.append("inner.proto")
    kind = file.enum_type.add(name="Time")
    kind.value.add(name="EARLY", number=3)
    kind.value.add(name="LATE", number=-1)
    outer = file.message_type.add(name="Outer")
    outer.extension_range.add(start=500, end=600)
    group = outer.nested_type.add(name="O_group")
    group.field.add(name="y", number=1, type=5, label=1)
    for number, name in enumerate(TYPES, 1):
        labels = [("o", 1), ("r", 3)]
        if name not in ("string", "bytes", "group", "message"):
            labels.append(("p", 3))
        for i, (letter, label) in enumerate(labels):
            if (letter, name) == ("r", "group"):
                continue
            field = outer.field.add(
                name=f"{letter}_{name}", number=10 * number + i, type=number, label=label
            )
            if letter == "p":
                field.options.packed = True
            if name == "enum":
                field.type_name = ".outer.Time"
            elif name == "message":
                field.type_name = ".inner.Inner"
            elif name == "group":
                field.type_name = ".outer.Outer.O_group"
            if letter == "o" and name not in ("bytes", "group", "message"):
                field.default_value = FEW.get(name, "7")
    file.extension.add(name="more", number=500, type=5, label=1, extendee=".outer.Outer")
    return made


def source() -> bytes:
    return b"bytes://" + files().SerializeToString()


@functools.cache
def outer_class() -> Any:
    from google.protobuf import descriptor_pool
    from google.protobuf.message_factory import GetMessageClass

    pool = descriptor_pool.DescriptorPool()
    for file in files().file:
        pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName("outer.Outer"))


def drawn(name: str, rng: np.random.Generator) -> Any:
    """Return a value of a type, often one of its limits."""
    if name == "double":
        return float(rng.choice([0.0, -1.5, rng.normal() * 1e200]))
    if name == "float":
        return float(np.float32(rng.choice([0.0, -1.5, rng.normal()])))
    if name == "bool":
        return bool(rng.integers(2))
    if name == "string":
        return ["", "a", "größer", "x" * 200][rng.integers(4)]
    if name == "bytes":
        return [b"", b"\0\xff", b"abc" * 100][rng.integers(3)]
    if name == "enum":
        return int(rng.choice([3, -1]))
    bits = 32 if name.endswith("32") else 64
    if name.startswith(("u", "f")):
        return [0, 1, 2**bits - 1, int(rng.integers(2**31))][rng.integers(4)]
    return [0, -1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), int(rng.integers(-99, 99))][
        rng.integers(5)
    ]


def message(rng: np.random.Generator) -> Any:
    made = outer_class()()
    for name in SCALARS:
        if rng.random() < 0.5:
            setattr(made, f"o_{name}", drawn(name, rng))
        for letter in "rp":
            if rng.random() < 0.5 and (letter == "r" or hasattr(made, f"p_{name}")):
                values = [drawn(name, rng) for _ in range(rng.integers(1, 4))]
                getattr(made, f"{letter}_{name}").extend(values)
    if rng.random() < 0.5:
        made.o_message.x = int(rng.integers(-9, 9))
        made.o_group.y = int(rng.integers(-9, 9))
    return made


def is_repeated(field: Any) -> bool:
    """Whether a field holds several values, told as all versions of the library do."""
    known = getattr(field, "is_repeated", None)
    return bool(field.label == field.LABEL_REPEATED if known is None else known)


def plain(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("sanitize", [False, True])
def test_fields_are_those_that_the_library_reads(seed: int, sanitize: bool) -> None:
    rng = np.random.default_rng(seed)
    messages = [message(rng) for _ in range(3)]
    given = np.array([m.SerializeToString() for m in messages], object)
    descriptor = outer_class().DESCRIPTOR
    chosen = [
        (f.name, str(rng.choice(TYPES[f.name[2:]])))
        for f in rng.permutation(descriptor.fields).tolist()
    ]
    found = run(
        hr.io.decode_proto(
            hr.constant(given),
            "outer.Outer",
            [name for name, _ in chosen],
            [dtype for _, dtype in chosen],
            source(),
            sanitize=sanitize,
        )
    )
    for i, (name, dtype) in enumerate(chosen):
        field = descriptor.fields_by_name[name]
        for row, each in enumerate(messages):
            value = getattr(each, name)
            if is_repeated(field):
                values = [plain(v) for v in value]
            elif not each.HasField(name):
                values = []
            elif name in ("o_message", "o_group"):
                values = [value.SerializeToString()]
            else:
                values = [plain(value)]
            rows = found.values[i][row].tolist()
            assert found.sizes[row, i] == len(values), name
            assert rows[: len(values)] == values, (name, dtype)
            default = plain(field.default_value) if not is_repeated(field) else None
            if default is not None and name not in ("o_message", "o_group"):
                assert all(v == default for v in rows[len(values) :]), name
            else:
                assert not any(rows[len(values) :]), name
        assert found.values[i].shape[1] == max(1, found.sizes[:, i].max())


@pytest.mark.parametrize("seed", range(8))
def test_messages_are_those_that_the_library_writes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    messages = [message(rng) for _ in range(2)]
    names = [f.name for f in outer_class().DESCRIPTOR.fields]
    dtypes = [str(rng.choice(TYPES[name[2:]])) for name in names]
    given = np.array([m.SerializeToString() for m in messages], object)
    read = hr.io.decode_proto(hr.constant(given), "outer.Outer", names, dtypes, source())
    order = rng.permutation(len(names)).tolist()
    written = hr.io.encode_proto(
        hr.gather(read.sizes, order, axis=1),
        [read.values[i] for i in order],
        [names[i] for i in order],
        "outer.Outer",
        source(),
    )
    assert written.shape.as_list() == [2]
    assert run(written).tolist() == given.tolist()


def test_shapes_sizes_and_defaults() -> None:
    batch = hr.placeholder(hr.string, [2, None])
    found = hr.io.decode_proto(batch, "outer.Outer", ["r_int32", "o_enum"], [hr.int64, hr.int32],
                               source(), name="n")  # fmt: skip
    assert found.sizes.shape.as_list() == [2, None, 2]
    assert found.values[0].shape.as_list() == [2, None, None]
    assert [t.name for t in (found.sizes, *found.values)] == ["n:0", "n:1", "n:2"]
    made = outer_class()(r_int32=[5, -6]).SerializeToString()
    sizes, values = run(list(found), {batch: [[made], [b""]]})
    assert sizes.tolist() == [[[2, 0]], [[0, 0]]]
    assert [v.tolist() for v in values] == [[[[5, -6]], [[0, 0]]], [[[-1]], [[-1]]]]


def test_the_last_value_of_a_single_field_counts_and_messages_join() -> None:
    one, other = (outer_class()(o_int32=i, r_int32=[i]).SerializeToString() for i in (1, 2))
    found = run(hr.io.decode_proto([one + other], "outer.Outer", ["o_int32", "r_int32"],
                                   [hr.int32] * 2, source()))  # fmt: skip
    assert found.sizes.tolist() == [[1, 2]]
    assert [v.tolist() for v in found.values] == [[[2]], [[1, 2]]]


def test_extensions_have_full_names_and_values_of_other_kinds_are_passed_over() -> None:
    # The field 500, a varint, and the field of o_int32 as 8 bytes.
    number = outer_class().DESCRIPTOR.fields_by_name["o_int32"].number
    data = b"\xa0\x1f\x09" + bytes([number << 3 & 0x7F | 0x81, number >> 4]) + b"12345678"
    found = run(hr.io.decode_proto([data], "outer.Outer", ["outer.more", "o_int32"],
                                   [hr.int32] * 2, source()))  # fmt: skip
    assert found.sizes.tolist() == [[1, 0]]
    assert found.values[0].tolist() == [[9]]


def test_descriptions_are_read_at_once_and_kept_in_the_graph(tmp_path: Path) -> None:
    path = tmp_path / "described"
    path.write_bytes(files().SerializeToString())
    found = hr.io.decode_proto([b""], "outer.Outer", ["o_int32"], [hr.int32], str(path))
    path.unlink()
    again = hr.Graph.from_document(hr.get_default_graph().to_document())
    with hr.Session(graph=again) as session:
        assert session.run(found.values[0].name).tolist() == [[7]]


def test_messages_of_the_process() -> None:
    example = hr.train.Example()
    example.features.feature["a"].int64_list.value.extend([1, 2])
    features = run(hr.io.decode_proto([example.SerializeToString()], "tensorflow.Example",
                                      ["features"], [hr.string]))  # fmt: skip
    assert features.values[0].item() == example.features.SerializeToString()
    # Those that the program has imported.
    named = run(hr.io.decode_proto([files().file[0].SerializeToString()],
                                   "google.protobuf.FileDescriptorProto", ["name"],
                                   [hr.string], ""))  # fmt: skip
    assert named.values[0].item() == b"inner.proto"


def test_text() -> None:
    found = run(hr.io.decode_proto([b"o_int32: 5 r_double: [1, 2]"], "outer.Outer",
                                   ["o_int32", "r_double"], [hr.int32, hr.float64], source(),
                                   "text"))  # fmt: skip
    assert [v.tolist() for v in found.values] == [[[5]], [[1.0, 2.0]]]


def decoded(**changes: Any) -> Any:
    given: dict[str, Any] = {
        "bytes": [b""],
        "message_type": "outer.Outer",
        "field_names": ["o_int32"],
        "output_types": [hr.int32],
        "descriptor_source": source(),
    }
    return hr.io.decode_proto(**{**given, **changes})


@pytest.mark.parametrize(
    ("changes", "error", "match"),
    [
        ({"message_type": "outer.None"}, AttributeValueError,
         "message_type 'outer.None' is not described by descriptor_source"),
        ({"field_names": ["none"]}, AttributeValueError, "outer.Outer has no field 'none'; it has"),
        ({"field_names": [3]}, ArgumentTypeError, "field_names"),
        ({"output_types": []}, AttributeValueError, "output_types must have an entry for each"),
        ({"output_types": [hr.float32]}, DTypeError,
         "output_types of the field 'o_int32', which is int32, must be int32 or int64"),
        ({"message_format": "json"}, AttributeValueError, "message_format must be 'binary' or"),
        ({"descriptor_source": "/nowhere/at all"}, AttributeValueError, "cannot be read"),
        ({"descriptor_source": 3}, AttributeValueError, "descriptor_source must be a path"),
        ({"descriptor_source": "bytes://"}, AttributeValueError, "holds no descriptions"),
        ({"descriptor_source": "bytes://abc"}, AttributeValueError, "no serialized FileDescriptor"),
        ({"bytes": [1]}, DTypeError, "bytes must be string"),
    ],
)  # fmt: skip
def test_refused(changes: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        decoded(**changes)


def test_files_that_are_needed_must_be_there() -> None:
    part = type(files())(file=[files().file[1]]).SerializeToString()
    with pytest.raises(AttributeValueError, match="with all files that it needs"):
        decoded(descriptor_source=b"bytes://" + part)


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"\xff", "cut off within a number"),
        (b"\x09abc", "cut off within the field 1"),
        (b"\x0a\x05ab", "cut off within the field 1"),
        (b"\x00\x00", "no fields of the number 0"),
        (b"\x0e\x00", "no values of the kind 6"),
        (b"\x0c", "no values of the kind 4"),
        (b"\x08" + b"\xff" * 11, "more than 10 bytes"),
        (b"\x0b\x08", "cut off within a number"),
        (b"\x0b\x14", "the group 1 of a message ends as 2"),
        (b"\x0b" * 150 + b"\x0c" * 150, "groups more than 100 deep"),
        # The packed doubles in 5 bytes, and packed numbers that end within one.
        (b"\x62\x05abcde", "5 bytes are no numbers of 8 bytes each"),
        (b"\xa2\x03\x01\xff", "cut off within a number"),
    ],
)
def test_what_is_no_message_is_refused_when_it_runs(data: bytes, match: str) -> None:
    found = decoded(
        bytes=[data], field_names=["p_double", "p_int32"], output_types=[hr.float64, hr.int32]
    )
    # The numbers of the fields above.
    fields = outer_class().DESCRIPTOR.fields_by_name
    assert (fields["p_double"].number, fields["p_int32"].number) == (12, 52)
    with pytest.raises(DataLossError, match=match):
        run(found.sizes)


@pytest.mark.parametrize(
    ("changes", "error", "match"),
    [
        ({"bytes": hr.constant}, InvalidArgumentError, "bytes must hold one message at least"),
        ({"bytes": [b"zz: 5"], "message_format": "text"}, DataLossError,
         "no outer.Outer in text form"),
        ({"bytes": [b"\x09\x01"], "sanitize": True}, DataLossError,
         "no outer.Outer in binary form"),
    ],
)  # fmt: skip
def test_refused_when_it_runs(changes: Any, error: Any, match: str) -> None:
    if callable(changes["bytes"]):
        changes = {"bytes": hr.zeros([0], hr.string)}
    found = decoded(**changes)
    with pytest.raises(error, match=match):
        run(found.sizes)


def encoded(**changes: Any) -> Any:
    given: dict[str, Any] = {
        "sizes": [[1]],
        "values": [[[5]]],
        "field_names": ["o_int32"],
        "message_type": "outer.Outer",
        "descriptor_source": source(),
    }
    return hr.io.encode_proto(**{**given, **changes})


@pytest.mark.parametrize(
    ("changes", "error", "match"),
    [
        ({"field_names": [], "values": []}, AttributeValueError, "must name one field at least"),
        ({"values": []}, AttributeValueError, "values must have an entry for each of 1"),
        ({"values": [[[5.0]]]}, DTypeError, "values of the field 'o_int32', which is int32"),
        ({"values": [[5]], "sizes": [1]}, ShapeError, "must have 2 dimensions or more"),
        ({"sizes": [[1, 1]]}, ShapeError, "sizes must have a number for each field"),
        ({"sizes": [[1, 1]], "field_names": ["o_int32", "r_int32"], "values": [[[5]], [[5], [6]]]},
         ShapeError, "incompatible"),
        ({"message_type": "none"}, AttributeValueError, "is not described"),
    ],
)  # fmt: skip
def test_encode_refuses(changes: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        encoded(**changes)


@pytest.mark.parametrize(
    ("sizes", "values", "match"),
    [
        ([[2]], [[5]], "sizes must be from 0 to 1 for the field 'o_int32', got 2 for message 0"),
        ([[1], [-1]], [[5], [6]], "got -1 for message 1"),
        ([[1, 1]], [[5]], r"sizes must have the shape \[1, 1\], got \[1, 2\]"),
        ([1], [5], "must have 2 dimensions or more"),
    ],
)
def test_encode_refuses_when_it_runs(sizes: Any, values: Any, match: str) -> None:
    counts, given = hr.placeholder(hr.int32), hr.placeholder(hr.int32)
    written = encoded(sizes=counts, values=[given])
    with pytest.raises((ExecutionError, ShapeError, InvalidArgumentError), match=match):
        run(written, {counts: sizes, given: values})


def test_encode_refuses_values_of_several_batches_when_it_runs() -> None:
    given = hr.placeholder(hr.int32)
    written = encoded(sizes=hr.placeholder_with_default([[1, 1]], None), values=[given, [[5], [6]]],
                      field_names=["o_int32", "r_int32"])  # fmt: skip
    with pytest.raises(ShapeError, match="values must agree but for their last dimension"):
        run(written, {given: [[5]]})
