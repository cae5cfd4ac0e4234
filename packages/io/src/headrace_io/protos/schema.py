"""Reading files of the protocol buffer language, as far as the schemas of this package use it.

References:
    Protocol Buffers, Language Guide (proto 3): https://protobuf.dev/programming-guides/proto3/.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FieldOptions,
    FileDescriptorProto,
    MessageOptions,
    OneofDescriptorProto,
)

from headrace.errors import shown

_COMMENT = re.compile(r"//[^\n]*")
_TOKEN = re.compile(r"\"[^\"]*\"|[\w.]+|[^\s\w]")
_SCALARS = (
    *("double", "float", "int64", "uint64", "int32", "uint32", "sint64", "sint32"),
    *("fixed64", "fixed32", "sfixed64", "sfixed32", "bool", "string", "bytes"),
)


def read_schema(name: str, text: str) -> FileDescriptorProto:
    """Return the descriptor of a file.

    Fields of messages and enums have the names of their types as they stand in the file, and no
    type yet; a pool resolves them.

    Args:
        name: By what other files import it.
        text: What it holds: ``syntax``, ``package``, ``import``, messages and enums, nested as one
            likes, fields that are single, ``repeated``, ``map`` or in a ``oneof``, and the option
            ``deprecated``.

    Raises:
        ValueError: if it holds anything else.
    """
    return _Reader(name, text).file()


def resolve(schema: FileDescriptorProto, known: dict[str, bool]) -> None:
    """Give the fields of a file their types: full names, looked for from the inside out.

    Args:
        schema: What ``read_schema`` returned.
        known: The full names of the files that it imports, and for each whether it is an enum;
            those of the file are added.

    Raises:
        ValueError: if a type is not declared.
    """
    scope = f".{schema.package}"
    known.update((f"{scope}.{enum.name}", True) for enum in schema.enum_type)
    for message in schema.message_type:
        _declare(message, scope, known)
    for message in schema.message_type:
        _resolve(message, scope, known)


def _declare(message: DescriptorProto, scope: str, known: dict[str, bool]) -> None:
    full = f"{scope}.{message.name}"
    known[full] = False
    known.update((f"{full}.{enum.name}", True) for enum in message.enum_type)
    for nested in message.nested_type:
        _declare(nested, full, known)


def _resolve(message: DescriptorProto, scope: str, known: dict[str, bool]) -> None:
    full = f"{scope}.{message.name}"
    for nested in message.nested_type:
        _resolve(nested, full, known)
    for field in message.field:
        if not field.type_name:
            continue
        outer = full
        while outer and f"{outer}.{field.type_name}" not in known:
            outer = outer.rpartition(".")[0]
        found = f"{outer}.{field.type_name}"
        if found not in known:
            raise ValueError(f"{full}.{field.name}: no type {field.type_name!r} is declared")
        field.type_name = found
        kinds = FieldDescriptorProto
        field.type = kinds.TYPE_ENUM if known[found] else kinds.TYPE_MESSAGE


class _Reader:
    def __init__(self, name: str, text: str) -> None:
        self._name = name
        self._tokens: Iterator[str] = iter(_TOKEN.findall(_COMMENT.sub("", text)))

    def file(self) -> FileDescriptorProto:
        found = FileDescriptorProto(name=self._name)
        for token in self._tokens:
            if token == "message":
                found.message_type.append(self._message())
            elif token == "enum":
                found.enum_type.append(self._enum())
            elif token == "import":
                found.dependency.append(self._next().strip('"'))
                self._expect(";")
            elif token == "package":
                found.package = self._next()
                self._expect(";")
            elif token == "syntax":
                self._expect("=")
                found.syntax = self._next().strip('"')
                self._expect(";")
            else:
                raise self._refused(token)
        return found

    def _message(self) -> DescriptorProto:
        found = DescriptorProto(name=self._next())
        self._expect("{")
        while (token := self._next()) != "}":
            if token == "message":
                found.nested_type.append(self._message())
            elif token == "enum":
                found.enum_type.append(self._enum())
            elif token == "oneof":
                found.oneof_decl.append(OneofDescriptorProto(name=self._next()))
                self._expect("{")
                while (kind := self._next()) != "}":
                    field = self._field(kind)
                    field.oneof_index = len(found.oneof_decl) - 1
                    found.field.append(field)
            elif token == "map":
                self._map(found)
            elif token == "repeated":
                field = self._field(self._next())
                field.label = FieldDescriptorProto.LABEL_REPEATED
                found.field.append(field)
            else:
                found.field.append(self._field(token))
        return found

    def _field(self, kind: str) -> FieldDescriptorProto:
        field = FieldDescriptorProto(name=self._next())
        field.label = FieldDescriptorProto.LABEL_OPTIONAL
        _set_type(field, kind)
        self._expect("=")
        field.number = int(self._next())
        token = self._next()
        if token == "[":
            for expected in ("deprecated", "=", "true", "]"):
                self._expect(expected)
            field.options.CopyFrom(FieldOptions(deprecated=True))
            token = self._next()
        if token != ";":
            raise self._refused(token)
        return field

    def _map(self, message: DescriptorProto) -> None:
        """Add a map, which is a repeated message of a key and a value."""
        self._expect("<")
        key = self._next()
        self._expect(",")
        value = self._next()
        self._expect(">")
        field = self._field("")
        field.label = FieldDescriptorProto.LABEL_REPEATED
        words = field.name.split("_")
        entry = DescriptorProto(name="".join(map(str.capitalize, words)) + "Entry")
        entry.options.CopyFrom(MessageOptions(map_entry=True))
        for number, (name, kind) in enumerate((("key", key), ("value", value)), 1):
            part = FieldDescriptorProto(name=name, number=number)
            part.label = FieldDescriptorProto.LABEL_OPTIONAL
            _set_type(part, kind)
            entry.field.append(part)
        message.nested_type.append(entry)
        field.type_name = entry.name
        message.field.append(field)

    def _enum(self) -> EnumDescriptorProto:
        found = EnumDescriptorProto(name=self._next())
        self._expect("{")
        while (token := self._next()) != "}":
            self._expect("=")
            found.value.add(name=token, number=int(self._next()))
            self._expect(";")
        return found

    def _next(self) -> str:
        token = next(self._tokens, None)
        if token is None:
            raise ValueError(f"{self._name}: it ends in the middle of a declaration")
        return token

    def _expect(self, expected: str) -> None:
        token = self._next()
        if token != expected:
            raise ValueError(f"{self._name}: expected {expected!r}, got {shown(token)}")

    def _refused(self, token: str) -> ValueError:
        return ValueError(f"{self._name}: {token!r} is nothing that schemas here use")


def _set_type(field: FieldDescriptorProto, kind: str) -> None:
    if kind in _SCALARS:
        types: Any = FieldDescriptorProto
        field.type = types.Type.Value(f"TYPE_{kind.upper()}")
    elif kind:
        field.type_name = kind
