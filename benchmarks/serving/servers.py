"""A server in this process, which tells its port and ends when its standard input does.

python -m benchmarks.serving.servers PARTICIPANT
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import threading
from collections.abc import Callable
from typing import Any

from benchmarks.serving import network

PARTICIPANTS = ("headrace", "headrace, a step each", "plain")


def _headrace(max_batch_size: int) -> None:
    import headrace as hr

    with network.signature() as signature:
        batching = hr.serve.Batching(max_batch_size=max_batch_size)
        with hr.serve.Server({"m": signature}, port=0, batching=batching) as server:
            _told(server.port)


def _plain() -> None:
    """Serve the network with uvicorn and twenty lines: no checks, no limits, no batches."""
    import numpy as np
    import uvicorn

    layers = network.weights()

    async def application(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body = b""
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        x = np.array(json.loads(body)["instances"], np.float32)
        answer = json.dumps({"predictions": network.in_numpy(x, layers).tolist()}).encode()
        headers = [(b"content-type", b"application/json")]
        headers.append((b"content-length", str(len(answer)).encode()))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    # asyncio sends at once, without Nagle's delay, where the socket says that it is TCP's.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    config = uvicorn.Config(
        application, http="httptools", loop="asyncio", lifespan="off", log_config=None
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])), daemon=True)
    thread.start()
    _told(listening.getsockname()[1])
    server.should_exit = True
    thread.join(30)


def _told(port: int) -> None:
    """Tell the port, and return when nobody needs the server any more."""
    print(port, flush=True)
    sys.stdin.read()


_SERVERS: dict[str, Callable[[], None]] = {
    "headrace": lambda: _headrace(64),
    "headrace, a step each": lambda: _headrace(1),
    "plain": _plain,
}

if __name__ == "__main__":
    _SERVERS[sys.argv[1]]()
