"""The body of a request: read within limits on size and time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from headrace.errors import shown
from headrace_serve.errors import (
    REQUEST_TIMEOUT,
    TOO_LARGE,
    UNSUPPORTED_MEDIA_TYPE,
    RequestError,
)
from headrace_serve.limits import Limits

Receive = Callable[[], Awaitable[dict[str, Any]]]


class ClientGone(Exception):  # noqa: N818 - nobody is left to whom it would be an error
    """The client closed the connection before its request had arrived."""


async def read_body(headers: dict[bytes, bytes], receive: Receive, limits: Limits) -> bytes:
    """Return the body of a request.

    Args:
        headers: The headers, by names in small letters.
        receive: What ASGI calls so.
        limits: Those of the server.

    Raises:
        RequestError: if it is too large, takes too long, or is compressed.
        ClientGone: if there is no one to answer.
    """
    encoding = headers.get(b"content-encoding", b"identity").decode("latin-1")
    if encoding != "identity":
        raise RequestError(
            UNSUPPORTED_MEDIA_TYPE,
            f"content-encoding: expected no compression, got {shown(encoding)}",
        )
    announced = headers.get(b"content-length", b"")
    if announced.isdigit() and int(announced) > limits.max_body:
        _refuse_large(limits, f"{int(announced)}")
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(limits.read_timeout):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientGone
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > limits.max_body:
                    _refuse_large(limits, "more")
                if not message.get("more_body", False):
                    return parts[0] if len(parts) == 1 else b"".join(parts)
    except TimeoutError:
        raise RequestError(
            REQUEST_TIMEOUT,
            f"the request has not arrived within {limits.read_timeout:g} s: {size} bytes are here",
            connection="close",
        ) from None


def _refuse_large(limits: Limits, got: str) -> None:
    raise RequestError(
        TOO_LARGE,
        f"the body of a request may have {limits.max_body} bytes, got {got}",
        connection="close",
    )
