"""Containers: named stores of what outlives steps - variables, queues and the like."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar, final

from headrace.dtypes import DType
from headrace.errors import ResourceError, UninitializedError
from headrace.shapes import Shape

T = TypeVar("T")


@final
class VariableCell:
    """The buffer of a variable on one device.

    The value is replaced, never changed in place, so a reader keeps a consistent value however
    long it holds it.
    """

    __slots__ = ("dtype", "lock", "name", "shape", "value")

    def __init__(self, name: str, dtype: DType, shape: Shape) -> None:
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.value: Any = None
        self.lock = threading.Lock()

    def read(self) -> Any:
        """Return the value.

        Raises:
            UninitializedError: if there is none.
        """
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

    def reset(self) -> None:
        """Drop the value."""
        with self.lock:
            self.value = None


@final
class Container:
    """A named store of resources on one device."""

    def __init__(self) -> None:
        self._items: dict[str, Any] = {}
        self._lock = threading.Lock()

    def get_or_create(self, name: str, kind: type[T], create: Callable[[], T]) -> T:
        """Return the resource ``name``, made by ``create`` when first asked for.

        Raises:
            ResourceError: if the name belongs to a resource of another kind.
        """
        with self._lock:
            item = self._items.get(name)
            if item is None:
                item = self._items[name] = create()
            if not isinstance(item, kind):
                raise ResourceError(
                    f"resource {name!r} is a {type(item).__name__}, expected a {kind.__name__}; "
                    "give one of them another shared_name"
                )
            return item

    def resources(self) -> list[Any]:
        """Return everything in the container."""
        with self._lock:
            return list(self._items.values())

    def reset(self) -> None:
        """Bring every resource into the state in which it was made."""
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
