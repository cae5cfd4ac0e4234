"""Lists of tensors as steps hold them: immutable, so that they are values like any other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headrace.runtime.device import Device, HostArray


class Swapped:
    """An item that was moved to host memory, to be fetched back when it is read."""

    __slots__ = ("array",)

    def __init__(self, array: HostArray) -> None:
        self.array = array


class ListValue:
    """The value of a list of tensors.

    Attributes:
        items: Arrays of a device, ``Swapped`` ones, or None where nothing was put.
    """

    __slots__ = ("items",)

    def __init__(self, items: Iterable[Any] = ()) -> None:
        self.items = tuple(items)

    def __len__(self) -> int:
        return len(self.items)

    def item(self, index: int, device: Device) -> Any:
        """Return an item as an array of a device; None where nothing was put."""
        return restored(self.items[index], device)

    def arrays(self, device: Device) -> list[Any]:
        """Return all items as arrays of a device."""
        return [restored(item, device) for item in self.items]

    def map(self, function: Any) -> ListValue:
        """Return the list of what a function makes of each item that was put, lists included."""
        return ListValue(
            None
            if item is None
            else item.map(function)
            if isinstance(item, ListValue)
            else function(item.array if isinstance(item, Swapped) else item)
            for item in self.items
        )

    def __repr__(self) -> str:
        return f"<list of {len(self.items)} tensors>"


def restored(item: Any, device: Device) -> Any:
    """Return an item of a list as an array of a device."""
    return device.from_host(item.array) if isinstance(item, Swapped) else item


def swapped(item: Any, device: Device) -> Any:
    """Return an item of a list as one that lies in host memory."""
    if item is None or isinstance(item, Swapped | ListValue):
        return item
    return Swapped(device.to_host(item))
