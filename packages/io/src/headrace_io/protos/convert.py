"""Messages made of what programs have: other messages, bytes, JSON."""

from __future__ import annotations

from typing import Any

from headrace.errors import DataLossError, DTypeError, shown
from headrace_io.protos.pool import PACKAGE, message_class, parsed

# TensorBoard has the same messages in a package of its own.
_PACKAGES = (PACKAGE, "tensorboard")


def as_message(name: str, value: Any, what: str) -> Any:
    """Return a message of its own that is equal to what a program gives.

    Args:
        name: The message, as in ``"Summary"``.
        value: One of Headrace, TensorFlow or TensorBoard, or a serialized one. Those that core has
            without protobuf, such as ``hr.RunMetadata``, are among them.
        what: What errors call it.

    Raises:
        DataLossError: if bytes are no such message.
        DTypeError: if it is something else.
    """
    cls = message_class(name)
    if isinstance(value, bytes):
        return parsed(name, value, what)
    if isinstance(value, cls):
        made = cls()
        made.CopyFrom(value)
        return made
    if type(value).__name__ == name and hasattr(value, "FIELDS"):
        made = cls()
        _fill(made, value)
        return made
    full = getattr(getattr(value, "DESCRIPTOR", None), "full_name", "")
    if full in {f"{package}.{name}" for package in _PACKAGES}:
        return parsed(name, value.SerializeToString(), what)
    raise DTypeError(
        f"{what} must be a {name}, got {type(value).__name__}: {shown(value, 60)}; "
        f"{name}.FromString "
        "reads the bytes of one"
    )


def _fill(made: Any, value: Any) -> None:
    """Fill in a message from one of core's, which has the same fields or some of them."""
    for field in value.FIELDS:
        found = getattr(value, field)
        if isinstance(found, list):
            for item in found:
                if hasattr(item, "FIELDS"):
                    _fill(getattr(made, field).add(), item)
                else:
                    getattr(made, field).append(item)
        elif hasattr(found, "FIELDS"):
            _fill(getattr(made, field), found)
        elif found:
            # The system's numbers of threads have more bits than the message has.
            setattr(made, field, found & 0xFFFFFFFF if field == "thread_id" else found)


def message_from_json(name: str, text: str | bytes) -> Any:
    """Return the message that a text in JSON describes.

    Raises:
        DataLossError: if it describes none.
    """
    # lazy: messages as JSON are rare
    from google.protobuf.json_format import Parse, ParseError

    try:
        return Parse(text, message_class(name)())
    except (ParseError, UnicodeDecodeError) as error:
        raise DataLossError(f"{shown(text, 60)} is no {name} in JSON: {error}") from error


def as_text(message: Any) -> str:
    """Return a message in the text form of Protocol Buffers, as files ``.pbtxt`` have it.

    Args:
        message: A message.
    """
    # lazy: few programs write text
    from google.protobuf import text_format

    text: str = text_format.MessageToString(message)
    return text
