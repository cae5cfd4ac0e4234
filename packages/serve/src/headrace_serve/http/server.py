"""A server: an application, a socket, and uvicorn in a thread."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import signal
import socket
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import uvicorn

from headrace.errors import ConfigError, FailedPreconditionError, UnavailableError
from headrace_serve.http.application import Application
from headrace_serve.http.connection import connections_with
from headrace_serve.limits import Batching, Limits
from headrace_serve.models.sources import Models

_LOG = logging.getLogger("headrace.serve")
# Seconds within which the event loop must have begun; it takes some hundredths.
_START = 30.0
# Seconds beyond the grace that the end of the event loop may take.
_END = 10.0
_BACKLOG = 2048


class Server:
    """Answers for models over HTTP, until it is stopped.

    It listens from the moment it is made, and answers from ``start`` on; a ``with`` block starts
    and stops it. A stopped server cannot be started again.

    Attributes:
        application: The ASGI application, with the models and counters.
        host: The address that it listens on.
        port: The port that it listens on, also where 0 asked for a free one.
        url: What addresses start with, as in ``"http://127.0.0.1:8501"``.
    """

    def __init__(
        self,
        models: Models | Application,
        *,
        name: str = "",
        host: str = "127.0.0.1",
        port: int = 8501,
        batching: Batching | None = None,
        limits: Limits | None = None,
        poll: float = 0.0,
    ) -> None:
        """Load the models, and listen.

        Args:
            models: What ``Application`` takes, or an application, which brings its own name,
                batching, limits and poll.
            name: The name of a single model; that of its folder if empty.
            host: The address to listen on. Any other than a loopback address lets other machines
                ask, without a password; that is said in a warning.
            port: The port to listen on, 0 for a free one.
            batching: How requests are joined.
            limits: What it allows.
            poll: Seconds after which folders are looked at for new versions; 0 to look once.

        Raises:
            HeadraceError: if a model cannot be loaded, or the address cannot be listened on.
        """
        # Whether the port is free shows before models are loaded, which may take long.
        self._socket = _bound(host, port)
        try:
            if isinstance(models, Application):
                if name or batching or limits or poll:
                    raise ConfigError(
                        "an application brings its own name, batching, limits and poll: give them "
                        "to Application"
                    )
                self.application = models
            else:
                self.application = Application(
                    models, name=name, batching=batching, limits=limits, poll=poll
                )
            with _told(host, port):
                self._socket.listen(_BACKLOG)
            self.host, self.port = self._socket.getsockname()[:2]
            self.url = f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"
            if not ipaddress.ip_address(self.host.partition("%")[0]).is_loopback:
                warnings.warn(
                    f"{self.url} can be reached from other machines, and whoever reaches it may "
                    "ask the models: nothing asks for a password",
                    RuntimeWarning,
                    stacklevel=2,
                )
        except BaseException:
            self._socket.close()
            raise
        self._limits = self.application.limits
        self._uvicorn = uvicorn.Server(
            uvicorn.Config(
                self.application,
                http=connections_with(self._limits.read_timeout),
                ws="none",
                loop="asyncio",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                limit_concurrency=self._limits.max_connections + 1,
                timeout_keep_alive=self._limits.keep_alive,  # type: ignore[arg-type]
                timeout_graceful_shutdown=self._limits.grace,  # type: ignore[arg-type]
            )
        )
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None
        self._stopped = False

    def start(self) -> None:
        """Answer from now on, in a thread.

        Raises:
            FailedPreconditionError: if it was started already.
            UnavailableError: if the event loop does not begin.
        """
        if self._thread is not None or self._stopped:
            raise FailedPreconditionError("a server is started once; make another one")
        self._thread = threading.Thread(target=self._run, name="headrace-serve", daemon=True)
        self._thread.start()
        waited = threading.Event()
        for _ in range(int(_START / 0.005)):
            if self._uvicorn.started or not self._thread.is_alive():
                break
            waited.wait(0.005)
        if not self._uvicorn.started:
            raise UnavailableError(
                f"the server does not start: {self._failure or 'no reason told'}"
            )

    def _run(self) -> None:
        try:
            asyncio.run(self._uvicorn.serve(sockets=[self._socket]))
        except BaseException as error:
            self._failure = error

    def request_stop(self) -> None:
        """Let the server stop, without waiting; signal handlers may call this."""
        self.application.draining = True
        self._uvicorn.should_exit = True

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the server has stopped.

        Args:
            timeout: The most seconds to wait, None for any number.

        Returns:
            Whether it has.
        """
        if self._thread is None:
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def stop(self) -> None:
        """Answer what is in flight, refuse everything else, and let go of the models.

        Raises:
            UnavailableError: if requests are still in flight when the grace is over.
        """
        self.request_stop()
        if self._thread is None and not self._stopped:
            asyncio.run(self.application.close())
        self._stopped = True
        ended = self.wait(self._limits.grace + _END)
        self._socket.close()
        if not ended or self.application.abandoned:
            raise UnavailableError(
                f"requests were still in flight after {self._limits.grace:g} s and are not answered"
            )
        if self._failure is not None:
            raise UnavailableError(f"the server failed: {self._failure!r}") from self._failure

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()


@contextmanager
def stopped_by_signals(request_stop: Callable[[], None]) -> Iterator[None]:
    """Call a function on SIGTERM and SIGINT; a second signal of a kind does what it always does."""

    def handle(number: int, frame: Any) -> None:
        signal.signal(number, before[number])
        request_stop()

    numbers = (signal.SIGTERM, signal.SIGINT)
    before: dict[int, Any] = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, before[number])


def _bound(host: str, port: int) -> socket.socket:
    """Return a socket that is bound.

    Raises:
        ConfigError: if the address is none of this machine's, or taken.
    """
    if not 0 <= port < 1 << 16:
        raise ConfigError(f"port: expected a number from 0 to 65535, got {port}")
    try:
        # asyncio sends at once, without Nagle's delay, where the socket says that it is TCP's.
        family, kind, protocol, _, address = socket.getaddrinfo(
            host,
            port,
            type=socket.SOCK_STREAM,
            proto=socket.IPPROTO_TCP,
            flags=socket.AI_PASSIVE,
        )[0]
        made = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ConfigError(f"host: {host!r} is no address: {error.strerror}") from error
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with _told(host, port):
            made.bind(address)
    except ConfigError:
        made.close()
        raise
    return made


@contextmanager
def _told(host: str, port: int) -> Iterator[None]:
    """Tell in words that an address cannot be listened on."""
    try:
        yield
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {host} port {port}: {error.strerror}; port 0 takes a free one"
        ) from error
