"""What the tests of serving share: models without a graph, and a client."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import headrace as hr
from headrace_serve import PREDICT, Signature, TensorInfo

Shape = tuple[int | None, ...] | None


def info(dtype: Any = hr.float32, shape: Shape = (None,)) -> TensorInfo:
    return TensorInfo(hr.as_dtype(dtype), shape)


def function(
    call: Callable[..., Any],
    inputs: dict[str, TensorInfo] | None = None,
    outputs: dict[str, TensorInfo] | None = None,
    method_name: str = PREDICT,
) -> Signature:
    """A signature that calls a Python function with arrays by keyword; ``y`` is what it returns."""

    def called(arrays: Any) -> Any:
        found = call(**arrays)
        return found if isinstance(found, dict) else {"y": found}

    inputs = {"x": info()} if inputs is None else inputs
    return Signature(inputs, outputs or {"y": info()}, called, method_name)


def half_plus_two(x: Any) -> Any:
    return x * np.float32(0.5) + np.float32(2)


class Answer(NamedTuple):
    """What a server answered."""

    status: int
    data: Any
    headers: dict[str, str]

    @property
    def error(self) -> str:
        assert list(self.data) == ["error"]
        return str(self.data["error"])


def ask(
    url: str,
    path: str,
    data: Any = None,
    *,
    method: str | None = None,
    headers: dict[str, str] | None = None,
    timeout: float = 30.0,
) -> Answer:
    """Ask a server; ``data`` is the body, bytes as they are and anything else as JSON."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=timeout)
    try:
        return ask_on(connection, path, data, method=method, headers=headers)
    finally:
        connection.close()


def ask_on(
    connection: http.client.HTTPConnection,
    path: str,
    data: Any = None,
    *,
    method: str | None = None,
    headers: dict[str, str] | None = None,
) -> Answer:
    """Ask on a connection that stays open."""
    body = data if data is None or isinstance(data, bytes) else json.dumps(data).encode()
    method = method or ("GET" if data is None else "POST")
    connection.request(method, path, body, headers or {})
    response = connection.getresponse()
    content = response.read()
    found = {name.lower(): value for name, value in response.getheaders()}
    is_json = found.get("content-type") == "application/json" and content
    return Answer(response.status, json.loads(content) if is_json else content.decode(), found)


def counters(url: str) -> dict[str, float]:
    """Return what a server has counted, by name with labels."""
    lines = [line for line in ask(url, "/metrics").data.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}
