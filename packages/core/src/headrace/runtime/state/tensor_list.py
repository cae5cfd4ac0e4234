"""Lists of tensors as steps hold them: immutable, so that they are values like any other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any, final, overload

from headrace.runtime.devices.device import Device, HostArray


class Swapped:
    """An item that was moved to host memory, to be fetched back when it is read."""

    __slots__ = ("array",)

    def __init__(self, array: HostArray) -> None:
        self.array = array


@final
class StackedItems(Sequence[Any]):
    """Items that lie one behind the other, as the parts of one array along its first axis.

    What wants all of them takes the array. A part of it is made where an item is asked for.

    Attributes:
        array: [n, ...], which nobody changes any more.
    """

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> StackedItems: ...
    def __getitem__(self, index: int | slice) -> Any:
        """Return an item as an array, also where it has no axes; of a slice, the items in it."""
        if isinstance(index, slice):
            return StackedItems(self.array[index])
        return self.array[index, ...]


@final
class MissingItems(Sequence[None]):
    """So many items of which none was put yet: what a list begins with.

    Whoever fills all of them need not look at each.
    """

    __slots__ = ("_count",)

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[None]:
        return repeat(None, self._count)

    @overload
    def __getitem__(self, index: int) -> None: ...
    @overload
    def __getitem__(self, index: slice) -> MissingItems: ...
    def __getitem__(self, index: int | slice) -> MissingItems | None:
        """Return no item; of a slice, as many as it has."""
        places = range(self._count)[index]
        return MissingItems(len(places)) if isinstance(places, range) else None


class ListValue:
    """The value of a list of tensors.

    Taking off the last item yields a list that shares the items of the first: a loop that takes
    off one after the other does not copy what is left each time.
    """

    __slots__ = ("_all", "_length")

    def __init__(self, items: Iterable[Any] = (), length: int | None = None) -> None:
        """Take items: arrays of a device, ``Swapped`` ones, or None where nothing was put.

        Args:
            items: They; of a list, a tuple, what is stacked or missing, which nobody may change
                any more, no copy is made.
            length: How many of them belong to the list; all if None.
        """
        kept = isinstance(items, list | tuple | StackedItems | MissingItems)
        self._all: Sequence[Any] = items if kept else tuple(items)  # type: ignore[assignment]
        self._length = len(self._all) if length is None else length

    @property
    def items(self) -> Sequence[Any]:
        """All items."""
        found, length = self._all, self._length
        return found if len(found) == length else found[:length]

    def __len__(self) -> int:
        return self._length

    @property
    def stacked(self) -> Any:
        """All items as one array [n, ...], None where they do not lie in one."""
        found = self._all
        return found.array[: self._length] if type(found) is StackedItems else None

    def without_last(self, count: int = 1) -> ListValue:
        """Return the list without its last items; there are as many."""
        return ListValue(self._all, self._length - count)

    def parted(self, device: Device) -> tuple[ListValue, Any]:
        """Return the list without its last item, and that item, None where nothing was put.

        Raises:
            IndexError: if the list is empty.
        """
        last = self._length - 1
        if last < 0:
            raise IndexError(last)
        found = self._all[last]
        if type(found) is Swapped:
            found = device.from_host(found.array)
        return ListValue(self._all, last), found

    def item(self, index: int, device: Device) -> Any:
        """Return an item as an array of a device; None where nothing was put.

        Args:
            index: Which one, from 0 to below the length.
            device: The device.
        """
        found = self._all[index]
        return device.from_host(found.array) if type(found) is Swapped else found

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
        return f"<list of {len(self)} tensors>"


def restored(item: Any, device: Device) -> Any:
    """Return an item of a list as an array of a device."""
    return device.from_host(item.array) if isinstance(item, Swapped) else item


def swapped(item: Any, device: Device) -> Any:
    """Return an item of a list as one that lies in host memory."""
    if item is None or isinstance(item, Swapped | ListValue):
        return item
    return Swapped(device.to_host(item))
