"""Containers: named stores of what outlives steps - variables, queues and the like."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, final

import numpy as np

from headrace.dtypes import DType
from headrace.errors import ResourceMismatchError, UninitializedError
from headrace.graph.attributes import attribute_key
from headrace.interrupts import uninterrupted
from headrace.records import dataclass
from headrace.shapes import Shape

T = TypeVar("T")


class _Taken:
    """Stands in a cell while a step changes the value in place."""


_TAKEN: Any = _Taken()


def _holders(value: Any) -> int:
    return sys.getrefcount(value)


# What ``_holders`` answers for a value that one local variable holds, and nothing else.
_alone = np.empty(0)
_ALONE = _holders(_alone)


def _copied(value: Any) -> Any:
    """Return a copy of an array of the host or of another device, in C order."""
    return np.array(value, order="C") if isinstance(value, np.ndarray) else value.copy()


@final
class VariableCell:
    """The buffer of a variable on one device.

    Who reads the value may hold it as long as it likes: it never changes. A step that changes it
    in place takes it out of the cell first, and gets a copy where somebody holds it.
    """

    __slots__ = ("dtype", "lock", "name", "shape", "value")

    def __init__(self, name: str, dtype: DType, shape: Shape) -> None:
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.value: Any = None
        self.lock = threading.Lock()

    @property
    def initialized(self) -> bool:
        """Whether there is a value."""
        return self.value is not None

    def read(self) -> Any:
        """Return the value, waiting while a step changes it in place.

        Raises:
            UninitializedError: if there is none.
        """
        value = self.value
        if value is _TAKEN:
            with self.lock:
                value = self.value
        if value is None:
            raise UninitializedError(f"variable {self.name!r} is not initialized")
        return value

    def assign(self, value: Any) -> Any:
        """Replace the value."""
        with self.lock:
            self.value = value
        return value

    def update(self, change: Callable[[Any], Any]) -> Any:
        """Replace the value by ``change(value)``, atomically, and return it."""
        with self.lock:
            self.value = new = change(self.read())
        return new

    def take(self, replacement: Callable[[], Any] | None = None) -> tuple[Any, Any]:
        """Take the value out, for changing it in place; ``give`` must follow, also after an error.

        Args:
            replacement: For who overwrites all of it: makes the array to write where there is no
                value, or somebody holds it.

        Returns:
            A C-contiguous array of which nobody else holds a part: the value itself where nobody
            reads it, or a copy or replacement; and the value. Readers and writers wait until one
            of them is given back.

        Raises:
            UninitializedError: if there is none, and no replacement.
        """
        self.lock.acquire()
        value = self.value
        try:
            if value is None and replacement is None:
                raise UninitializedError(f"variable {self.name!r} is not initialized")
            # The old value stays as it is for those who hold it.
            alone = value is not None and _holders(value) == _ALONE + 1
            mine = value
            if not alone or not (value.flags.owndata and value.flags.c_contiguous):
                mine = _copied(value) if replacement is None else replacement()
                if isinstance(mine, np.ndarray):
                    mine.flags.writeable = False
        except BaseException:
            self.lock.release()
            raise
        self.value = _TAKEN
        return mine, value

    def give(self, value: Any) -> None:
        """Put a value that was taken, and changed, back."""
        self.value = value
        self.lock.release()

    def reset(self) -> None:
        """Drop the value."""
        with self.lock:
            self.value = None


@dataclass(frozen=True, slots=True, eq=False)
class Declaration:
    """How a program declares a resource: what whoever shares it must agree on.

    Attributes:
        op: The type of the operation whose handle stands for it.
        attrs: The attributes that say what it is, by name.
        site: The line of the program, for messages.
    """

    op: str
    attrs: Mapping[str, Any]
    site: str

    def differences(self, other: Declaration) -> list[str]:
        """Return, for messages, each attribute in which two declarations differ.

        Shapes that are compatible do not differ: a program may know less than another. Nor do seeds
        where the other declaration has none: it takes those that there are.
        """
        if self.op != other.op:
            return [f"{self.op} and {other.op}"]
        return [
            f"{name} {_shown(self.attrs[name])} and {_shown(other.attrs[name])}"
            for name in self.attrs
            if not _agree(self.attrs[name], other.attrs[name])
            and not (name == "seeds" and other.attrs[name] is None)
        ]


def _agree(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, Shape):
        return mine.is_compatible_with(theirs)
    return attribute_key(mine) == attribute_key(theirs)


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_shown, value))}]"
    return repr(value) if isinstance(value, str | bytes) else f"{value!s:.80}"


@final
class Container:
    """A named store of resources on one device."""

    def __init__(self) -> None:
        self._items: dict[str, Any] = {}
        self._declarations: dict[str, Declaration] = {}
        # Names of what was reset since it was last asked for: it may be declared anew.
        self._emptied: set[str] = set()
        self._lock = threading.Lock()

    def get_or_create(
        self,
        name: str,
        kind: type[T],
        create: Callable[[], T],
        declaration: Declaration | None = None,
    ) -> T:
        """Return the resource ``name``, made by ``create`` when first asked for.

        Args:
            name: Its name in the container.
            kind: What it must be.
            create: Makes it.
            declaration: How the program declares it, to be compared with how it was first
                declared; None where names cannot meet.

        Raises:
            ResourceError: if the name belongs to a resource of another kind, or one that was
                declared otherwise.
        """
        with self._lock:
            known = self._declarations.get(name)
            if known is not None and declaration is not None:
                differences = known.differences(declaration)
                if differences and name not in self._emptied:
                    raise ResourceMismatchError(
                        f"resource {name!r} is declared in two ways: {', '.join(differences)}\n"
                        f"  first at {known.site}\n  now at {declaration.site}\n"
                        "  declare both alike, or give one of them another shared_name"
                    )
                if differences:
                    del self._items[name], self._declarations[name]
            self._emptied.discard(name)
            item = self._items.get(name)
            if item is None:
                item = self._items[name] = create()
            if not isinstance(item, kind):
                raise ResourceMismatchError(
                    f"resource {name!r} is a {type(item).__name__}, expected a {kind.__name__}; "
                    "give one of them another shared_name"
                )
            if declaration is not None:
                self._declarations.setdefault(name, declaration)
            return item

    def resources(self) -> list[Any]:
        """Return everything in the container."""
        with self._lock:
            return list(self._items.values())

    @uninterrupted
    def close(self, reason: BaseException) -> None:
        """Call ``close(reason)`` of every resource that has it: no step uses it any more."""
        for resource in self.resources():
            close = getattr(resource, "close", None)
            if close is not None:
                close(reason)

    @uninterrupted
    def reset(self) -> None:
        """Bring every resource into the state in which it was made; it may be declared anew."""
        with self._lock:
            self._emptied.update(self._items)
        for resource in self.resources():
            resource.reset()


class ContainerSet:
    """Containers by name, for each device of one process."""

    def __init__(self) -> None:
        self._containers: dict[tuple[str, str], Container] = {}
        self._lock = threading.Lock()

    def get(self, device: str, name: str) -> Container:
        """Return a device's container, making it when first asked for."""
        with self._lock:
            return self._containers.setdefault((device, name), Container())

    def close(self, reason: BaseException) -> None:
        """Close all containers."""
        with self._lock:
            found = list(self._containers.values())
        for container in found:
            container.close(reason)

    def reset(self, name: str | None = None) -> None:
        """Reset the containers ``name`` of all devices, or all containers."""
        with self._lock:
            chosen = [c for (_, n), c in self._containers.items() if name is None or n == name]
        for container in chosen:
            container.reset()


# Named containers live as long as the process, whatever sessions come and go.
PROCESS_CONTAINERS = ContainerSet()


def reset_containers(*names: str) -> None:
    """Drop the state in named containers of this process, on all devices.

    Variables in them are uninitialized afterwards, queues empty.

    Args:
        names: The containers; all if none is given.
    """
    if not names:
        PROCESS_CONTAINERS.reset()
    for name in names:
        PROCESS_CONTAINERS.reset(name)
