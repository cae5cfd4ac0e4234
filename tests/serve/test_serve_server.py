"""A server's life: where it listens, what it limits, and how it ends."""

from __future__ import annotations

import asyncio
import http.client
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from headrace.errors import ConfigError, FailedPreconditionError, UnavailableError
from headrace_serve import Application, Batching, Limits, LoadedModel, Server
from tests.serve.serving import ask, ask_on, counters, function, half_plus_two
from tests.waiting import wait_until

PREDICT = "/v1/models/m:predict"
ONE = {"instances": [1.0]}
LIMIT = 30.0


class Slow:
    """A model that answers when it is let, and says when it is asked."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.free = threading.Event()

    def __call__(self, x: Any) -> Any:
        self.began.set()
        assert self.free.wait(LIMIT)
        return x


def serve(model: Any = half_plus_two, **options: Any) -> Server:
    return Server({"m": function(model)}, port=0, **options)


def connect(server: Server) -> socket.socket:
    return socket.create_connection((server.host, server.port), timeout=LIMIT)


def answer_of(connection: socket.socket) -> bytes:
    """Return all that comes until the server closes the connection."""
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)


def ask_until_refused(server: Server) -> None:
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        assert ask(server.url, PREDICT, {}).status == 503
        time.sleep(0.01)


# -- where it listens


def test_it_listens_on_loopback_and_takes_a_free_port() -> None:
    with serve() as server, serve() as other:
        assert server.host == "127.0.0.1"
        assert server.port != other.port
        assert server.url == f"http://127.0.0.1:{server.port}"
        assert ask(other.url, PREDICT, ONE).data == {"predictions": [2.5]}


def test_an_address_of_other_machines_is_a_warning() -> None:
    with pytest.warns(RuntimeWarning, match=r"http://0\.0\.0\.0:\d+ can be reached from other mac"):
        server = serve(host="0.0.0.0")
    server.stop()


def test_a_port_that_is_taken_is_told() -> None:
    with serve() as server:
        said = f"listen on 127.0.0.1 port {server.port}: Address already in use; port 0 takes a"
        with pytest.raises(ConfigError, match=said):
            Server({"m": function(half_plus_two)}, port=server.port)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"port": 70000}, "port: expected a number from 0 to 65535, got 70000"),
        ({"host": "no such host"}, "host: 'no such host' is no address"),
        ({"poll": -1}, "poll: expected a number of seconds >= 0, got -1"),
    ],
)
def test_what_it_cannot_listen_on_is_refused(options: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Server({"m": function(half_plus_two)}, **{"port": 0, **options})


@pytest.mark.parametrize("name", ["a/b", "a:b", "a?", "50%"])
def test_names_that_addresses_cannot_hold_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="is no name of a model: expected one without"):
        Application({name: function(half_plus_two)})


def test_no_model_is_refused() -> None:
    with pytest.raises(ConfigError, match="there is no model to serve: expected at least one"):
        Application({})


def test_an_application_brings_its_own_limits() -> None:
    application = Application({"m": function(half_plus_two)}, limits=Limits(max_body=1))
    with pytest.raises(ConfigError, match="an application brings its own name, batching, limits"):
        Server(application, port=0, limits=Limits())
    with Server(application, port=0) as server:
        assert ask(server.url, PREDICT, ONE).status == 413


# -- limits on size, time and number


def test_bodies_that_are_too_large_are_refused() -> None:
    limits = Limits(max_body=100)
    with serve(limits=limits) as server:
        assert ask(server.url, PREDICT, ONE).status == 200
        answer = ask(server.url, PREDICT, b"x" * 101)
        assert (answer.status, answer.error) == (
            413,
            "the body of a request may have 100 bytes, got 101",
        )
        # One that does not say how long it is.
        with connect(server) as connection:
            connection.sendall(
                b"POST /v1/models/m:predict HTTP/1.1\r\nhost: m\r\n"
                b"transfer-encoding: chunked\r\n\r\n" + (b"50\r\n" + b"x" * 80 + b"\r\n") * 2
            )
            answered = answer_of(connection)
        assert answered.startswith(b"HTTP/1.1 413 ")
        assert answered.endswith(b'{"error":"the body of a request may have 100 bytes, got more"}')


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"", b"the head of the request has not arrived"),
        (b"POST /v1/models/m:predict HTTP/1.1\r\nhost:", b"the head of the request has not arriv"),
        (
            b"POST /v1/models/m:predict HTTP/1.1\r\nhost: m\r\ncontent-length: 10\r\n\r\n{",
            b"the request has not arrived within 0.2 s: 1 bytes are here",
        ),
    ],
    ids=["nothing", "head", "body"],
)
def test_requests_that_take_too_long_are_refused(sent: bytes, said: bytes) -> None:
    with serve(limits=Limits(read_timeout=0.2)) as server, connect(server) as connection:
        connection.sendall(sent)
        answered = answer_of(connection)
        assert answered.startswith(b"HTTP/1.1 408 ")
        assert said in answered


def test_slow_heads_are_refused_on_a_connection_that_is_used_again() -> None:
    with serve(limits=Limits(read_timeout=0.3)) as server, connect(server) as connection:
        connection.sendall(b"GET /readyz HTTP/1.1\r\nhost: m\r\n\r\nGET /readyz")
        answered = answer_of(connection)
        assert answered.startswith(b"HTTP/1.1 200 ")
        assert b"HTTP/1.1 408 " in answered


def test_what_is_no_http_gets_400() -> None:
    with serve() as server, connect(server) as connection:
        connection.sendall(b"\x16\x03\x01 hello\r\n\r\n")
        assert answer_of(connection).startswith(b"HTTP/1.1 400 ")
        assert ask(server.url, PREDICT, ONE).status == 200


def test_a_model_that_takes_too_long_gets_504() -> None:
    slow = Slow()
    with serve(slow, limits=Limits(timeout=0.2)) as server:
        answer = ask(server.url, PREDICT, ONE)
        assert (answer.status, answer.error) == (504, "the model has not answered within 0.2 s")
        slow.free.set()
        assert ask(server.url, PREDICT, ONE).data == {"predictions": [1.0]}


def test_a_full_queue_gets_503() -> None:
    slow = Slow()
    with serve(slow, batching=Batching(max_queue=1)) as server, ThreadPoolExecutor(2) as pool:
        first = pool.submit(ask, server.url, PREDICT, ONE)
        assert slow.began.wait(LIMIT)
        second = pool.submit(ask, server.url, PREDICT, ONE)
        waiting = 'headrace_serve_waiting{model="m",version="1"}'
        wait_until(lambda: counters(server.url)[waiting] == 1, within_s=LIMIT)
        answer = ask(server.url, PREDICT, ONE)
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert "1 requests wait for m/1/serving_default already" in answer.error
        slow.free.set()
        assert first.result().status == second.result().status == 200


def test_too_many_connections_get_503() -> None:
    with serve(limits=Limits(max_connections=1)) as server:
        connection = http.client.HTTPConnection(server.host, server.port, timeout=LIMIT)
        assert ask_on(connection, PREDICT, ONE).status == 200
        assert ask(server.url, PREDICT, ONE).status == 503
        assert ask_on(connection, PREDICT, ONE).status == 200
        connection.close()


# -- the end


def test_requests_in_flight_are_answered_and_new_ones_refused() -> None:
    slow = Slow()
    server = serve(slow)
    server.start()
    idle = connect(server)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(ask, server.url, PREDICT, ONE)
        assert slow.began.wait(LIMIT)
        server.request_stop()
        with pytest.raises(ConnectionError):
            ask_until_refused(server)
        assert not first.done()
        slow.free.set()
        answer = first.result()
    assert answer.data == {"predictions": [1.0]}
    assert answer.headers["connection"] == "close"
    assert answer_of(idle) == b""
    idle.close()
    server.stop()
    assert server.wait(0)


def test_a_server_that_is_being_stopped_refuses_on_open_connections() -> None:
    application = Application({"m": function(half_plus_two)})
    with Server(application, port=0) as server:
        application.draining = True
        answer = ask(server.url, PREDICT, ONE)
        assert (answer.status, answer.error) == (503, "the server is being stopped")
        assert ask(server.url, "/readyz").error == ("the server is not ready: it is being stopped")
        assert ask(server.url, "/livez").status == 200


def test_requests_that_do_not_end_are_left_after_the_grace() -> None:
    slow = Slow()
    server = serve(slow, limits=Limits(grace=0.2))
    server.start()
    with ThreadPoolExecutor(1) as pool:
        left = pool.submit(ask, server.url, PREDICT, ONE)
        assert slow.began.wait(LIMIT)
        with pytest.raises(UnavailableError, match=r"still in flight after 0\.2 s"):
            server.stop()
        assert left.exception() is not None or left.result().status >= 500
    slow.free.set()


def test_models_are_let_go_of_once_at_the_end() -> None:
    closed: list[int] = []
    model = LoadedModel({"serving_default": function(half_plus_two)}, lambda: closed.append(1))
    with Server({"m": model}, port=0) as server:
        assert ask(server.url, PREDICT, ONE).status == 200
        assert not closed
    assert closed == [1]


def test_a_server_is_started_once() -> None:
    server = serve()
    with server, pytest.raises(FailedPreconditionError, match="a server is started once"):
        server.start()
    with pytest.raises(FailedPreconditionError, match="a server is started once"):
        server.start()


def test_one_that_was_never_started_is_stopped() -> None:
    closed: list[int] = []
    model = LoadedModel({"serving_default": function(half_plus_two)}, lambda: closed.append(1))
    server = Server({"m": model}, port=0)
    server.stop()
    assert closed == [1]
    with pytest.raises(ConnectionError):
        ask(server.url, PREDICT, ONE)


def test_threads_and_sockets_are_given_back() -> None:
    def count() -> int:
        return sum(thread.name.startswith("headrace-serve") for thread in threading.enumerate())

    before = count()
    for _ in range(5):
        with serve() as server:
            assert ask(server.url, PREDICT, ONE).status == 200
        wait_until(lambda: count() <= before, within_s=LIMIT)
    assert count() == before
    # The port can be listened on again at once.
    Server({"m": function(half_plus_two)}, port=server.port).stop()


# -- the application under another server


def test_the_application_speaks_asgi() -> None:
    sent: list[dict[str, Any]] = []

    async def main() -> None:
        application = Application({"m": function(half_plus_two)})
        scope = {"type": "http", "method": "POST", "path": PREDICT, "headers": []}
        body = iter([{"type": "http.request", "body": b'{"instances": [1]}'}])

        async def receive() -> Any:
            return next(body)

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await application(scope, receive, send)
        await application({"type": "websocket"}, receive, send)
        await application.close()

    asyncio.run(main())
    assert [message["type"] for message in sent] == [
        *("http.response.start", "http.response.body", "websocket.close")
    ]
    assert sent[1]["body"] == b'{"predictions":[2.5]}'


def test_nothing_is_answered_to_a_client_that_has_gone() -> None:
    sent: list[dict[str, Any]] = []

    async def main() -> None:
        application = Application({"m": function(half_plus_two)})
        scope = {"type": "http", "method": "POST", "path": PREDICT, "headers": []}

        async def receive() -> Any:
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await application(scope, receive, send)
        assert "in_flight 0" in application.counters.text([("in_flight", {}, 0)])

    asyncio.run(main())
    assert not sent
