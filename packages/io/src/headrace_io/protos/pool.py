"""The messages of the schemas beside this module, in a pool of their own.

A pool of our own lets a process use TensorFlow, TensorBoard or other packages that bring messages
of the same names.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from google.protobuf import any_pb2
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from headrace.errors import DataLossError, shown
from headrace_io.protos.schema import read_schema, resolve

PACKAGE = "tensorflow"


@functools.cache
def pool() -> DescriptorPool:
    """Return the pool of all schemas."""
    made = DescriptorPool()
    made.AddSerializedFile(any_pb2.DESCRIPTOR.serialized_pb)
    folder = Path(__file__).with_name("schemas")
    files = [file for file in folder.iterdir() if file.name.endswith(".proto")]
    waiting = {
        schema.name: schema
        for schema in (read_schema(file.name, file.read_text("utf-8")) for file in files)
    }

    known = {".google.protobuf.Any": False}

    def add(name: str) -> None:
        schema = waiting.pop(name, None)
        if schema is not None:
            for needed in schema.dependency:
                add(needed)
            resolve(schema, known)
            made.AddSerializedFile(schema.SerializeToString())

    for name in sorted(waiting):
        add(name)
    return made


@functools.cache
def message_class(name: str) -> Any:
    """Return the class of a message, as in ``message_class("Summary")``.

    Raises:
        KeyError: if no schema has it.
    """
    descriptor = pool().FindMessageTypeByName(f"{PACKAGE}.{name}")
    made: Any = GetMessageClass(descriptor)
    # Where pickle finds it.
    made.__module__ = "headrace_io.protos"
    for nested in descriptor.nested_types:
        # The implementation in Python leaves that to generated code.
        if not nested.GetOptions().map_entry and not hasattr(made, nested.name):
            setattr(made, nested.name, message_class(f"{name}.{nested.name}"))
    return made


def parsed(name: str, data: bytes, what: str) -> Any:
    """Return a message that was serialized.

    Args:
        name: Its name, as in ``"Summary"``.
        data: The bytes.
        what: What errors call the bytes.

    Raises:
        DataLossError: if they are no such message.
    """
    try:
        return message_class(name).FromString(data)
    except (DecodeError, TypeError) as error:
        raise DataLossError(f"{what} is no serialized {name}: {shown(data, 60)}") from error


@functools.cache
def enum_values(name: str) -> dict[str, int]:
    """Return the numbers of an enum's names, as in ``enum_values("DataType")["DT_FLOAT"]``."""
    found = pool().FindEnumTypeByName(f"{PACKAGE}.{name}")
    return {value.name: value.number for value in found.values}
