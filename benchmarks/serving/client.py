"""Clients that ask without pause, each on a connection of its own, and check every answer."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.serving import network

CLIENTS = 16
# Requests of each client, asked in turn; made before the clock starts.
_KINDS = 8


@dataclass(frozen=True)
class Load:
    """What came of a load.

    Attributes:
        requests_s: Answers per second.
        median_s: The time that half of the answers took at most.
        p99_s: The time that 99 of 100 answers took at most.
        wrong: How many answers were wrong, or no answer.
    """

    requests_s: float
    median_s: float
    p99_s: float
    wrong: int


def load(port: int, requests: int, rows: int, clients: int = CLIENTS) -> Load:
    """Ask a server of the network, and wait for all answers.

    Args:
        port: Where it listens on the loopback address.
        requests: How many requests, of all clients together.
        rows: How many rows each has.
        clients: How many clients ask at once.
    """
    return asyncio.run(_load(port, requests // clients, rows, clients))


async def _load(port: int, each: int, rows: int, clients: int) -> Load:
    layers = network.weights()
    plans = []
    for client in range(clients):
        inputs = [network.rows(client * _KINDS + kind, rows) for kind in range(_KINDS)]
        expected = [network.in_numpy(x, layers) for x in inputs]
        plans.append([(_request(x), e) for x, e in zip(inputs, expected, strict=True)])
    start = time.perf_counter()
    found = await asyncio.gather(*(_client(port, plan, each) for plan in plans))
    seconds = time.perf_counter() - start
    latencies = np.concatenate([times for times, _ in found])
    median, p99 = np.quantile(latencies, [0.5, 0.99]).tolist()
    return Load(len(latencies) / seconds, median, p99, sum(wrong for _, wrong in found))


def _request(x: Any) -> bytes:
    body = json.dumps({"instances": x.tolist()}).encode()
    head = f"POST /v1/models/m:predict HTTP/1.1\r\nhost: m\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def _client(port: int, plan: list[tuple[bytes, Any]], each: int) -> tuple[Any, int]:
    """Ask in turn; return the time of each answer, and how many were wrong."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    times = np.zeros(each)
    wrong = 0
    for index in range(each):
        request, expected = plan[index % len(plan)]
        before = time.perf_counter()
        writer.write(request)
        status, body = await _answer(reader)
        times[index] = time.perf_counter() - before
        # Checking takes the client's time, which is the same for all servers.
        good = status == 200 and np.allclose(json.loads(body)["predictions"], expected, atol=1e-3)
        wrong += not good
    writer.close()
    await writer.wait_closed()
    return times, wrong


async def _answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines if ": " in line)
    return int(status.split()[1]), await reader.readexactly(int(headers["content-length"]))
