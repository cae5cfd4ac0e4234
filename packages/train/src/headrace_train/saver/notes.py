"""What a program says of a checkpoint beside its tensors, on its way to the op that writes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from headrace.errors import CheckpointMismatchError, InvalidArgumentError


def encode_notes(step: int | None, metadata: Mapping[str, Any] | None) -> bytes:
    """Return notes as the text that save ops take.

    Raises:
        CheckpointError: if ``metadata`` is not what JSON can hold.
    """
    if step is None and not metadata:
        return b""
    try:
        text = json.dumps({"step": step, "metadata": dict(metadata or {})}, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as reason:
        raise CheckpointMismatchError(
            f"the metadata of a checkpoint must be what JSON can hold: {reason}"
        ) from reason
    return text.encode()


def decode_notes(notes: bytes | None) -> tuple[int | None, dict[str, Any]]:
    """Return the step and the metadata of what ``encode_notes`` returned.

    Raises:
        InvalidArgumentError: if it is something else.
    """
    if not notes:
        return None, {}
    try:
        found = json.loads(notes)
        step, metadata = found["step"], found["metadata"]
        if not isinstance(metadata, dict) or not (step is None or type(step) is int):
            raise TypeError("they are no object with a step and metadata")
    except (ValueError, TypeError, KeyError, RecursionError) as reason:
        raise InvalidArgumentError(f"notes that make no sense: {reason}") from reason
    return step, metadata
