"""From the bytes of a request to the object that they are in JSON."""

from __future__ import annotations

import json
from typing import Any

from headrace_serve.errors import refuse
from headrace_serve.models.signature import DEFAULT_SIGNATURE
from headrace_serve.requests.arrays import json_name


def read_object(body: bytes) -> dict[str, Any]:
    """Return the object that a request holds.

    ``NaN``, ``Infinity`` and ``-Infinity`` are numbers.

    Raises:
        RequestError: if it holds none.
    """
    if not body:
        refuse("the request has no body: expected a JSON object")
    try:
        found = json.loads(body)
    except RecursionError:
        refuse("the JSON of the request is nested too deeply")
    except ValueError as error:
        # Of a JSONDecodeError and a UnicodeDecodeError, and of numbers of 5000 digits.
        refuse(f"the request is no JSON: {error}")
    if not isinstance(found, dict):
        refuse(f"expected a JSON object, got {json_name(found)}")
    return found


def signature_name(request: dict[str, Any]) -> str:
    """Return the name of the signature that a request asks for.

    Raises:
        RequestError: if it is no text.
    """
    name = request.get("signature_name", "")
    if not isinstance(name, str):
        refuse(f"signature_name: expected a string, got {json_name(name)}")
    return name or DEFAULT_SIGNATURE
