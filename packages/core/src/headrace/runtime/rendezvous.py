"""The rendezvous: where Send meets Recv, under keys that tell steps apart."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, NamedTuple, Protocol

from headrace.errors import CancelledError


class Key(NamedTuple):
    """What names a transfer: the step, the tensor, the devices at both ends, the invocation.

    That tells the invocations of a function within a step apart, such as the iterations of a loop.
    They come one after the other, so a transport that keeps the order of values need not send it.
    """

    step: int
    edge: str
    source: str
    destination: str
    invocation: str = ""


class _Dead:
    """The value of a tensor that nothing computes because a branch was not taken."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "DEAD"

    def __reduce__(self) -> str:
        return "DEAD"


DEAD = _Dead()

# Called with the value, DEAD, or an exception.
Receive = Callable[[Any], None]


class Rendezvous(Protocol):
    """Where values wait for who needs them. Values are host arrays or DEAD."""

    def send(self, key: Key, value: Any) -> None:
        """Hand over a value; never waits for the receiver."""

    def recv(self, key: Key, receive: Receive) -> None:
        """Call ``receive`` with the value as soon as it is there, from any thread."""

    def wait(self, completions: SimpleQueue[Any], timeout: float | None) -> Any:
        """Return the next item of a step's completions; a transport may make progress meanwhile.

        Args:
            completions: Where the items come.
            timeout: How many seconds to wait; None for any time. Always None for steps on several
                tasks, whose transport has deadlines of its own.

        Raises:
            queue.Empty: if none has come by then.
        """

    def close(self, step: int, reason: BaseException | None = None) -> None:
        """Forget a step: drop its values, and fail what waits for them with ``reason``."""


class LocalRendezvous:
    """A rendezvous within one process."""

    def __init__(self) -> None:
        self._values: dict[Key, Any] = {}
        self._waiting: dict[Key, Receive] = {}
        self._lock = threading.Lock()

    def send(self, key: Key, value: Any) -> None:
        """Hand over a value."""
        with self._lock:
            receive = self._waiting.pop(key, None)
            if receive is None:
                self._values[key] = value
                return
        receive(value)

    def recv(self, key: Key, receive: Receive) -> None:
        """Call ``receive`` with the value, at once where it is there already."""
        with self._lock:
            if key not in self._values:
                self._waiting[key] = receive
                return
            value = self._values.pop(key)
        receive(value)

    def wait(self, completions: SimpleQueue[Any], timeout: float | None) -> Any:
        """Return the next completion."""
        return completions.get(timeout=timeout)

    def close(self, step: int, reason: BaseException | None = None) -> None:
        """Forget a step."""
        with self._lock:
            for key in [k for k in self._values if k.step == step]:
                del self._values[key]
            orphans = [self._waiting.pop(k) for k in list(self._waiting) if k.step == step]
        for receive in orphans:
            receive(reason if reason is not None else CancelledError(f"step {step} has ended"))
