"""What fields messages have whose descriptions a program brings along.

A source is a file or bytes with a serialized ``FileDescriptorSet``, which ``protoc`` writes with
``--descriptor_set_out`` and ``--include_imports``; or nothing, for the messages that a process has:
those of this package, and those that the program has imported.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from google.protobuf import descriptor_pool
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

import headrace as hr
from headrace import DType
from headrace.errors import AttributeValueError, DTypeError, listing, shown
from headrace_io.protos.pool import pool

_BYTES = b"bytes://"
_LOCAL = (b"", b"local://")

# How each type of the language stands in messages, and the dtypes that hold its values.
_LONG, _SHORT, _SIZED, _GROUP = ("fixed64", "fixed32", "sized", "group")
_KINDS: dict[str, tuple[str, tuple[DType, ...]]] = {
    "double": (_LONG, (hr.float64,)),
    "float": (_SHORT, (hr.float32, hr.float64)),
    "int64": ("varint", (hr.int64,)),
    "uint64": ("varint", (hr.uint64,)),
    "int32": ("varint", (hr.int32, hr.int64)),
    "fixed64": (_LONG, (hr.uint64,)),
    "fixed32": (_SHORT, (hr.uint32, hr.uint64)),
    "bool": ("varint", (hr.bool,)),
    "string": (_SIZED, (hr.string,)),
    "group": (_GROUP, (hr.string,)),
    "message": (_SIZED, (hr.string,)),
    "bytes": (_SIZED, (hr.string,)),
    "uint32": ("varint", (hr.uint32, hr.uint64)),
    "enum": ("varint", (hr.int32,)),
    "sfixed32": (_SHORT, (hr.int32, hr.int64)),
    "sfixed64": (_LONG, (hr.int64,)),
    "sint32": ("varint", (hr.int32, hr.int64)),
    "sint64": ("varint", (hr.int64,)),
}
# By the numbers that descriptions have for them.
_NAMES = dict(enumerate(_KINDS, 1))


class Field(NamedTuple):
    """A field of a message.

    Attributes:
        name: Its name.
        number: Its number in messages.
        type: Its type, as in ``"sint32"``.
        wire: How its values stand in messages: ``"varint"``, ``"fixed64"``, ``"fixed32"``,
            ``"sized"`` or ``"group"``.
        dtypes: The dtypes that hold its values.
        repeated: Whether there may be several.
        packed: Whether several are written as one.
        default: What stands for a value that is not there.
    """

    name: str
    number: int
    type: str
    wire: str
    dtypes: tuple[DType, ...]
    repeated: bool
    packed: bool
    default: Any


def descriptions(source: Any) -> bytes:
    """Return the descriptions of a source, as they are kept in graphs; none for the process's own.

    Args:
        source: A path, ``"bytes://"`` with the bytes behind it, or ``""`` or ``"local://"``.

    Raises:
        AttributeValueError: if it does not hold descriptions.
    """
    if not isinstance(source, str | bytes):
        raise AttributeValueError(
            f"descriptor_source must be a path, 'bytes://...' or 'local://', got {shown(source)}"
        )
    # Bytes in texts are what Python makes of bytes that are no UTF-8.
    given = source.encode("utf-8", "surrogateescape") if isinstance(source, str) else source
    if given in _LOCAL:
        return b""
    if given.startswith(_BYTES):
        found = given[len(_BYTES) :]
    else:
        try:
            found = Path(os.fsdecode(given)).read_bytes()
        except (OSError, ValueError) as error:
            raise AttributeValueError(
                f"descriptor_source {shown(source)} cannot be read: {error}"
            ) from None
    if not found:
        raise AttributeValueError("descriptor_source holds no descriptions of messages")
    _pool(found)
    return found


@functools.lru_cache(maxsize=16)
def _pool(data: bytes) -> Any:
    wrong = "descriptor_source holds no serialized FileDescriptorSet with all files that it needs"
    try:
        waiting = {file.name: file for file in FileDescriptorSet.FromString(data).file}
    except (DecodeError, TypeError) as error:
        raise AttributeValueError(f"{wrong}: {error}") from None
    made = descriptor_pool.DescriptorPool()

    def add(name: str) -> None:
        file = waiting.pop(name, None)
        if file is not None:
            for needed in file.dependency:
                add(needed)
            made.AddSerializedFile(file.SerializeToString())

    try:
        for name in list(waiting):
            add(name)
    except (TypeError, RecursionError) as error:
        raise AttributeValueError(f"{wrong}: {error}") from None
    return made


def _descriptor(data: bytes, message_type: str) -> Any:
    pools = (_pool(data),) if data else (pool(), descriptor_pool.Default())
    for each in pools:
        try:
            return each.FindMessageTypeByName(message_type)
        except KeyError:
            continue
    raise AttributeValueError(
        f"message_type {shown(message_type)} is not described by descriptor_source"
    )


def message_of(data: bytes, message_type: str) -> Any:
    """Return the class of a message."""
    return GetMessageClass(_descriptor(data, message_type))


@functools.lru_cache(maxsize=256)
def fields_of(data: bytes, message_type: str, names: tuple[str, ...]) -> tuple[Field, ...]:
    """Return fields of a message, in the order of their names.

    Args:
        data: What ``descriptions`` returned.
        message_type: The full name of the message.
        names: Names of fields, and full names of extensions.

    Raises:
        AttributeValueError: if there is no such message, or a field that it does not have.
    """
    descriptor = _descriptor(data, message_type)
    extensions = {
        field.full_name: field for field in descriptor.file.pool.FindAllExtensions(descriptor)
    }
    found = []
    for name in names:
        field = descriptor.fields_by_name.get(name) or extensions.get(name)
        if field is None:
            raise AttributeValueError(
                f"{message_type} has no field {shown(name)}; it has "
                f"{listing(sorted([*descriptor.fields_by_name, *extensions]))}"
            )
        found.append(_field(name, field))
    return tuple(found)


def _field(name: str, field: Any) -> Field:
    kind = _NAMES[field.type]
    wire, dtypes = _KINDS[kind]
    # Protocol Buffers tells by the label alone before 6.31, and warns of that since.
    known = getattr(field, "is_repeated", None)
    repeated = field.label == field.LABEL_REPEATED if known is None else known
    default = field.default_value
    if kind in ("message", "group") or (repeated and dtypes == (hr.string,)):
        default = b""
    elif repeated:
        default = 0
    elif isinstance(default, str):
        default = default.encode()
    packed = bool(field.GetOptions().packed)
    return Field(name, field.number, kind, wire, dtypes, repeated, packed, default)


def check_dtypes(fields: Sequence[Field], dtypes: Sequence[DType], label: str) -> None:
    """Refuse dtypes that do not hold the values of fields.

    Raises:
        AttributeValueError: if there are not as many.
        DTypeError: if one does not.
    """
    if len(fields) != len(dtypes):
        raise AttributeValueError(
            f"{label} must have an entry for each of {len(fields)} field_names, got {len(dtypes)}"
        )
    for field, dtype in zip(fields, dtypes, strict=True):
        if dtype not in field.dtypes:
            raise DTypeError(
                f"{label} of the field {field.name!r}, which is {field.type}, must be "
                f"{' or '.join(map(str, field.dtypes))}, got {dtype}"
            )
