"""The state that kernels of one session see: containers, and streams of random numbers."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from headrace.graph.spec import TensorSpec
from headrace.runtime.concurrency.background import Background
from headrace.runtime.state.containers import (
    PROCESS_CONTAINERS,
    Container,
    ContainerSet,
    Declaration,
)

if TYPE_CHECKING:
    from headrace.graph.function import Function
    from headrace.runtime.execution.called_function import CalledFunction

T = TypeVar("T")
_WORD = 1 << 64


# From the name and the seeds of a random op: the key of its stream, and the number of this draw.
Draws = Callable[[str, tuple[int, int] | None], tuple[tuple[int, int], int]]
_DRAWING = threading.local()


@contextlib.contextmanager
def drawing_from(source: Draws) -> Iterator[None]:
    """Let random ops that this thread runs draw from ``source``, not from their session's streams.

    So the numbers that a function draws can depend on what it is called for, instead of on how
    often it was called before: calls may then run in any order, on any thread, and again.
    """
    before = getattr(_DRAWING, "source", None)
    _DRAWING.source = source
    try:
        yield
    finally:
        _DRAWING.source = before


def entropy() -> int:
    """Return 63 bits from the system's source of randomness."""
    return int.from_bytes(os.urandom(8), "little") >> 1


class _Stream:
    """The stream of a random op: its key, and how many draws were made from it."""

    __slots__ = ("drawn", "key")

    def __init__(self, key: tuple[int, int], drawn: int = 0) -> None:
        self.key = key
        self.drawn = drawn


class SessionState:
    """What a session, or a task of a cluster, keeps between steps.

    Attributes:
        background: Does what no step has to wait for.
    """

    def __init__(
        self, default: ContainerSet | None = None, background: Background | None = None
    ) -> None:
        """Begin.

        Args:
            default: The default container, which others have, too; None for an empty one.
            background: What does the work that no step has to wait for, of others, too; None for
                one of its own.
        """
        self.background = Background() if background is None else background
        self._default = ContainerSet() if default is None else default
        self._shared = default is not None
        self._streams: dict[str, _Stream] = {}
        self._lock = threading.Lock()
        self._called: weakref.WeakKeyDictionary[Function, dict[Hashable, CalledFunction]] = (
            weakref.WeakKeyDictionary()
        )

    def called(
        self, function: Function, device: Hashable, make: Callable[[], CalledFunction]
    ) -> CalledFunction:
        """Return what runs a function that kernels on a device call, made when first asked for."""
        with self._lock:
            known = self._called.setdefault(function, {})
            return known.get(device) or known.setdefault(device, make())

    def container(self, device: str, name: str) -> Container:
        """Return a container of a device: the default one for an empty name."""
        store = PROCESS_CONTAINERS if name else self._default
        return store.get(device, name)

    def stream(self, op_name: str, seeds: tuple[int, int] | None) -> tuple[tuple[int, int], int]:
        """Return the key of a random op's stream and the number of this draw from it."""
        source: Draws | None = getattr(_DRAWING, "source", None)
        if source is not None:
            return source(op_name, seeds)
        with self._lock:
            known = self._streams.get(op_name)
            if known is None:
                key = (entropy(), entropy()) if seeds is None else seeds
                known = self._streams[op_name] = _Stream(key)
            known.drawn += 1
            return known.key, known.drawn - 1

    def streams(self) -> dict[str, tuple[int, int, int]]:
        """Return the key of each random op's stream, two numbers, and how many draws were made."""
        with self._lock:
            return {name: (*known.key, known.drawn) for name, known in self._streams.items()}

    def set_streams(self, streams: Mapping[str, tuple[int, int, int]]) -> None:
        """Let the random streams go on where they were; those that are not named start anew."""
        with self._lock:
            self._streams = {
                name: _Stream((first, second), drawn)
                for name, (first, second, drawn) in streams.items()
            }

    def close(self, reason: BaseException) -> None:
        """End what runs by itself in its own container, such as threads that fetch ahead."""
        if not self._shared:
            self._default.close(reason)

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
        op_type: The type of the node's operation.
        site: The line of the program that made the node, for messages.
        options: What the session gives of the options of the device's kind.
    """

    __slots__ = (
        "_nest",
        "attrs",
        "device",
        "inputs",
        "op_name",
        "op_type",
        "options",
        "site",
        "state",
        "xp",
    )

    def __init__(
        self,
        device: Any,
        state: SessionState,
        op_name: str,
        attrs: Any,
        inputs: Sequence[TensorSpec] = (),
        op_type: str = "",
        site: object = None,
        options: Mapping[str, Any] | None = None,
        nest: Callable[[Function], CalledFunction] | None = None,
    ) -> None:
        self._nest = nest
        self.device = device
        self.xp = device.xp
        self.state = state
        self.op_name = op_name
        self.attrs = attrs
        self.inputs = inputs
        self.op_type = op_type
        self.site = site
        self.options: Mapping[str, Any] = {} if options is None else options

    @property
    def item_spec(self) -> TensorSpec:
        """What is known of the items of the list that the node takes first."""
        assert self.inputs[0].content is not None
        return self.inputs[0].content

    def called(self, function: Function) -> CalledFunction:
        """Return what runs a function that the node holds, planned for the node's device.

        Equal calls give equal bits, from the first on, wherever they run.

        Args:
            function: An attribute of the node.
        """
        assert self._nest is not None
        return self._nest(function)

    def container(self, name: str) -> Container:
        """Return a container of the node's device."""
        return self.state.container(str(self.device.name), name)

    def resource(self, kind: type[T], create: Callable[[], T]) -> T:
        """Return the resource that the node's handle stands for, made when first asked for.

        Its name and container are the node's attributes ``shared_name`` and ``container``; all
        others say what it is, and must be the same wherever a program declares it.

        Args:
            kind: Its class.
            create: Makes it.

        Raises:
            ResourceError: if the name belongs to a resource of another class, or to one that was
                declared with other attributes.
        """
        attrs = dict(self.attrs)
        name, container = attrs.pop("shared_name"), attrs.pop("container")
        declaration = Declaration(self.op_type, attrs, str(self.site))
        return self.container(container).get_or_create(name, kind, create, declaration)

    def draw(self, seeds: tuple[int, int] | None) -> tuple[tuple[int, int], int]:
        """Return key and counter for this run of a random op."""
        return self.state.stream(self.op_name, seeds)

    def generator(self, seeds: tuple[int, int] | None) -> np.random.Generator:
        """Return NumPy's generator for this run of a random op, for kernels on the host.

        Equal seeds give equal numbers in every process, and each run of the node other ones.

        Args:
            seeds: The node's attribute, as ``op_seeds`` makes it: the graph's and the op's seed,
                None for the system's entropy.

        References:
            J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
        """
        (graph_seed, op_seed), draw = self.draw(seeds)
        key = (graph_seed % _WORD) << 64 | op_seed % _WORD
        return np.random.Generator(np.random.Philox(key=key, counter=draw << 192))
