"""The ASGI application: addresses, methods and statuses of TensorFlow Serving's REST interface."""

from __future__ import annotations

import asyncio
import difflib
import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeVar

from headrace_serve.counters import Counters
from headrace_serve.errors import (
    GATEWAY_TIMEOUT,
    INTERNAL,
    METHOD_NOT_ALLOWED,
    NOT_FOUND,
    UNAVAILABLE,
    RequestError,
    refusal_of,
)
from headrace_serve.http.body import ClientGone, Receive, read_body
from headrace_serve.limits import Batching, Limits
from headrace_serve.models.description import metadata_of, status_of
from headrace_serve.models.model import Model, Version
from headrace_serve.models.signature import Arrays
from headrace_serve.models.sources import Models, Sources
from headrace_serve.requests import responses
from headrace_serve.requests.parsed_request import ParsedRequest, parse_request

_LOG = logging.getLogger("headrace.serve")

T = TypeVar("T")
Scope = MutableMapping[str, Any]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_PATH = re.compile(
    r"/v1/models/(?P<name>[^/:]+)(?:/versions/(?P<version>\d{1,18}))?"
    r"(?::(?P<method>predict|classify|regress)|(?P<metadata>/metadata))?"
)
_FIXED = ("/metrics", "/readyz", "/livez")
_ADDRESSES = (
    "/v1/models/NAME[/versions/NUMBER] with GET, its :predict, :classify and :regress with POST, "
    "its /metadata with GET, and /metrics, /readyz, /livez with GET"
)
# What has more bytes is read or written in another thread, so that others do not wait for it.
_LONG = 1 << 16
# About how many a number has in JSON.
_BYTES_OF_A_NUMBER = 16
_JSON = "application/json"


class Application:
    """An ASGI application that answers for models.

    It runs under any ASGI server that sends the messages of the protocol ``lifespan``;
    ``Server`` is one with a server library around it.

    Attributes:
        models: The models, by name.
        draining: Whether further requests are refused.
        limits: What it allows.
        abandoned: How many requests were left without an answer because the server ended.
        counters: What has been counted.
    """

    def __init__(
        self,
        models: Models,
        *,
        name: str = "",
        batching: Batching | None = None,
        limits: Limits | None = None,
        poll: float = 0.0,
    ) -> None:
        """Make an application.

        Args:
            models: A model, or a mapping of models by name. A model is the folder of a saved one,
                a folder of such folders that are called by the numbers of versions, a
                ``LoadedModel``, or a ``Signature``.
            name: The name of a single model; that of its folder if empty.
            batching: How requests are joined.
            limits: What it allows.
            poll: Seconds after which folders are looked at for new versions; 0 to look once.

        Raises:
            HeadraceError: if a model cannot be loaded.
        """
        self.counters = Counters()
        self.draining = False
        self.abandoned = 0
        self.limits = limits or Limits()
        self._sources = Sources(
            models, name=name, batching=batching or Batching(), counters=self.counters, poll=poll
        )
        self._in_flight = 0
        self._watching: asyncio.Task[None] | None = None

    @property
    def models(self) -> Mapping[str, Model]:
        """The models, by name."""
        return self._sources.models

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or follow the life of the server."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1003})
        else:
            await self._answer(scope, receive, send)

    # -- life

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self._watching = self._sources.watch()
                await send({"type": "lifespan.startup.complete"})
            else:
                await self.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def close(self) -> None:
        """Refuse further requests, wait for the steps that run, and let go of the models."""
        self.draining = True
        if self._watching is not None:
            self._watching.cancel()
        await self._sources.close()

    # -- requests

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = time.perf_counter()
        labels = {"method": "other", "status": ""}
        headers: dict[str, str] = {}
        self._in_flight += 1
        try:
            status, kind, body = await self._route(scope, receive, labels)
        except ClientGone:
            return
        except asyncio.CancelledError:
            self.abandoned += 1
            raise
        except RequestError as error:
            status, kind = error.status, _JSON
            body, headers = responses.write({"error": error.message}), error.headers
        except Exception as error:
            _LOG.exception("a request failed inside of the server")
            status, kind = INTERNAL, _JSON
            body = responses.write(
                {"error": f"inside of the server: {type(error).__name__}: {error}"}
            )
        finally:
            self._in_flight -= 1
        labels["status"] = str(status)
        self.counters.add("requests", labels)
        self.counters.add(
            "request_seconds", {"method": labels["method"]}, time.perf_counter() - start
        )
        if self.draining:
            headers["connection"] = "close"
        sent = {"content-type": kind, "content-length": str(len(body)), **headers}
        raw = [(name.encode(), value.encode("latin-1")) for name, value in sent.items()]
        await send({"type": "http.response.start", "status": status, "headers": raw})
        await send({"type": "http.response.body", "body": body})

    async def _route(
        self, scope: Scope, receive: Receive, labels: dict[str, str]
    ) -> tuple[int, str, bytes]:
        """Return the status, the kind and the body of an answer."""
        path = scope["path"]
        found = _PATH.fullmatch(path)
        if found is None and path not in _FIXED:
            raise RequestError(NOT_FOUND, f"there is nothing at {path}: expected {_ADDRESSES}")
        asked = found["method"] if found is not None else None
        labels["method"] = asked or ("metadata" if found and found["metadata"] else "status")
        allowed = ("POST",) if asked else ("GET", "HEAD")
        if scope["method"] not in allowed:
            raise RequestError(
                METHOD_NOT_ALLOWED,
                f"{path} is asked with {allowed[0]}, got {scope['method']}",
                allow=", ".join(allowed),
            )
        if found is None:
            labels["method"] = path[1:]
            return self._own(path)
        if self.draining and asked:
            raise RequestError(UNAVAILABLE, "the server is being stopped")
        model = self._model(found["name"])
        number = int(found["version"]) if found["version"] else None
        if asked is None:
            told = (
                metadata_of(model.name, model.version(number))
                if found["metadata"]
                else status_of(model, number)
            )
            return 200, _JSON, responses.write(told)
        body = await read_body(dict(scope["headers"]), receive, self.limits)
        return 200, _JSON, await self._ask(model.version(number), asked, body)

    def _own(self, path: str) -> tuple[int, str, bytes]:
        """Answer for the server itself."""
        if path == "/metrics":
            gauges: list[tuple[str, Mapping[str, str], float]] = [
                ("waiting", {"model": model.name, "version": str(version.number)}, version.waiting)
                for model in self.models.values()
                for version in model.versions.values()
            ]
            gauges.append(("in_flight", {}, self._in_flight))
            text = self.counters.text(gauges)
            return 200, "text/plain; version=0.0.4; charset=utf-8", text.encode()
        if path == "/readyz":
            lacking = [name for name, model in self.models.items() if not model.versions]
            if self.draining or lacking:
                why = "it is being stopped" if self.draining else f"no version of {lacking} answers"
                raise RequestError(UNAVAILABLE, f"the server is not ready: {why}")
        return 200, _JSON, responses.write({"status": "ok"})

    def _model(self, name: str) -> Model:
        model = self.models.get(name)
        if model is None:
            known = ", ".join(map(repr, sorted(self.models)))
            near = difflib.get_close_matches(name, list(self.models), 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise RequestError(NOT_FOUND, f"no model is called {name!r}; models: {known}{hint}")
        return model

    async def _ask(self, version: Version, method: str, body: bytes) -> bytes:
        """Return the answer of a version of a model."""
        with version.in_use():
            request = await _maybe_aside(len(body), lambda: parse_request(version, method, body))
            outputs = await self._outputs(version, request)
        size = _BYTES_OF_A_NUMBER * sum(array.size for array in outputs.values())
        return await _maybe_aside(size, lambda: request.respond(outputs))

    async def _outputs(self, version: Version, request: ParsedRequest) -> Arrays:
        name = request.signature_name
        try:
            async with asyncio.timeout(self.limits.timeout):
                return await version.batcher(name).run(request.inputs)
        except Exception as error:
            if type(error) is TimeoutError:
                why = f"the model has not answered within {self.limits.timeout:g} s"
                raise RequestError(GATEWAY_TIMEOUT, why) from None
            refusal = refusal_of(error)
            if refusal.status == INTERNAL:
                _LOG.error("%s: %s", name, refusal.message)
            raise refusal from error


async def _maybe_aside(size: int, function: Callable[[], T]) -> T:
    """Call a function, in another thread where what it works on is large."""
    return await asyncio.to_thread(function) if size > _LONG else function()
