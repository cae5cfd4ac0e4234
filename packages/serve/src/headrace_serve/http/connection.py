"""Connections: uvicorn's, with a limit on the time in which the head of a request arrives."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_TOO_SLOW = (
    b"HTTP/1.1 408 Request Timeout\r\ncontent-type: application/json\r\n"
    b"content-length: 53\r\nconnection: close\r\n\r\n"
    b'{"error":"the head of the request has not arrived"}\r\n'
)


def connections_with(read_timeout: float) -> type[HttpToolsProtocol]:
    """Return the class of connections that wait so many seconds for the head of a request.

    uvicorn limits how long a connection is idle between requests, and neither how long the first
    one takes to start nor how long a head takes to end.
    """

    class Connection(HttpToolsProtocol):
        _deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._expect_head()

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._expect_head()

        def on_headers_complete(self) -> None:
            self._head_is_here()
            super().on_headers_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            self._head_is_here()
            super().connection_lost(exc)

        def _expect_head(self) -> None:
            self._head_is_here()
            self._deadline = self.loop.call_later(read_timeout, self._give_up)

        def _head_is_here(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

        def _give_up(self) -> None:
            cycle: Any = self.cycle
            if cycle is not None and not cycle.response_complete:
                # An answer to what came before on this connection is under way.
                self._expect_head()
            elif not self.transport.is_closing():
                self.transport.write(_TOO_SLOW)
                self.transport.close()

    return Connection
