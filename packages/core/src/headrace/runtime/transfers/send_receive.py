"""Receiving a value onto a device and sending one from it: what a plan calls for Recv and Send."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from time import perf_counter_ns as clock
from typing import Any, final

from headrace.runtime.devices.capabilities import holds_host_arrays
from headrace.runtime.devices.device import Device
from headrace.runtime.state.tensor_list import ListValue
from headrace.runtime.transfers.rendezvous import DEAD, Edge


def moved(value: Any, move: Callable[[Any], Any]) -> Any:
    """Return a value moved between a device and the host; of a list, every item."""
    return value.map(move) if isinstance(value, ListValue) else move(value)


@final
class Sender:
    """The call that sends a value, or DEAD, from a device.

    Attributes:
        edge: The transfer.
        stays: Whether arrays are sent as they are: the device holds those of the host.
    """

    __slots__ = ("_to_host", "edge", "stays")

    def __init__(self, edge: Edge, device: Device) -> None:
        self.edge = edge
        self.stays = holds_host_arrays(device)
        self._to_host = device.to_host

    def __call__(self, step: Any, value: Any) -> None:
        """Send a value."""
        step.rendezvous.send(step, self.edge, self.moved(value))

    def moved(self, value: Any) -> Any:
        """Return a value on the host; DEAD as it is."""
        return value if value is DEAD else moved(value, self._to_host)


@final
class Receiver:
    """The blocking call that receives a value, or DEAD, onto a device.

    Attributes:
        edge: The transfer.
        note: Called for each value that has come, with the time at which it was asked for; None
            where nobody wants to know.
        stays: Whether what comes is taken as it is: the device holds values of the host.
    """

    __slots__ = ("_activate", "_from_host", "edge", "note", "stays")

    def __init__(self, edge: Edge, device: Device) -> None:
        self.edge = edge
        self.note: Callable[[int], None] | None = None
        self.stays = holds_host_arrays(device)
        self._from_host = device.from_host
        self._activate: Callable[[], AbstractContextManager[Any] | None] | None = None

    def activating(self, device: Device) -> Receiver:
        """Return itself, moving values while a device is active."""
        self._activate = device.activate
        return self

    def __call__(self, step: Any, done: Callable[[Any], None]) -> None:
        """Call ``done`` with the value on the device, or with an exception."""
        note, began = self.note, 0
        if note is not None:
            began = clock()

        def receive(value: Any) -> None:
            if note is not None:
                note(began)
            done(value if isinstance(value, BaseException) else self.moved(value))

        step.rendezvous.recv(step, self.edge, receive)

    def moved(self, value: Any) -> Any:
        """Return what came on the device; DEAD as it is."""
        if value is DEAD:
            return value
        if self._activate is None:
            return moved(value, self._from_host)
        context = self._activate()
        assert context is not None
        with context:
            return moved(value, self._from_host)
