"""The state that kernels of one session see: containers, and streams of random numbers."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from headrace.graph.spec import TensorSpec
from headrace.runtime.containers import PROCESS_CONTAINERS, Container, ContainerSet


def _entropy() -> int:
    """Return 63 bits from the system's source of randomness."""
    return int.from_bytes(os.urandom(8), "little") >> 1


class SessionState:
    """What a session, or a task of a cluster, keeps between steps."""

    def __init__(self, default: ContainerSet | None = None) -> None:
        """Start with an empty default container, or share ``default``."""
        self._default = ContainerSet() if default is None else default
        self._streams: dict[str, tuple[tuple[int, int], Iterator[int]]] = {}
        self._lock = threading.Lock()

    def container(self, device: str, name: str) -> Container:
        """Return a container of a device: the default one for an empty name."""
        store = PROCESS_CONTAINERS if name else self._default
        return store.get(device, name)

    def stream(self, op_name: str, seeds: tuple[int, int] | None) -> tuple[tuple[int, int], int]:
        """Return the key of a random op's stream and the number of this draw from it."""
        with self._lock:
            known = self._streams.get(op_name)
            if known is None:
                key = (_entropy(), _entropy()) if seeds is None else seeds
                known = self._streams[op_name] = (key, itertools.count())
            return known[0], next(known[1])

    def reset(self) -> None:
        """Drop the default container's state and start all random streams anew."""
        self._default.reset()
        with self._lock:
            self._streams.clear()


class KernelContext:
    """What a stateful or blocking kernel gets to see of its node and session.

    Attributes:
        device: The device on which it runs.
        xp: The device's array module.
        state: The session's state.
        op_name: The node's name.
        attrs: The node's attributes.
        inputs: What is known of the node's inputs.
    """

    __slots__ = ("attrs", "device", "inputs", "op_name", "state", "xp")

    def __init__(
        self,
        device: Any,
        state: SessionState,
        op_name: str,
        attrs: Any,
        inputs: Sequence[TensorSpec] = (),
    ) -> None:
        self.device = device
        self.xp = device.xp
        self.state = state
        self.op_name = op_name
        self.attrs = attrs
        self.inputs = inputs

    @property
    def item_spec(self) -> TensorSpec:
        """What is known of the items of the list that the node takes first."""
        assert self.inputs[0].content is not None
        return self.inputs[0].content

    def container(self, name: str) -> Container:
        """Return a container of the node's device."""
        return self.state.container(str(self.device.name), name)

    def draw(self, seeds: tuple[int, int] | None) -> tuple[tuple[int, int], int]:
        """Return key and counter for this run of a random op."""
        return self.state.stream(self.op_name, seeds)
