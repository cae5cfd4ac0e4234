"""Topological sorting: each item after those that it needs."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

T = TypeVar("T", bound=Hashable)


class CycleError(ValueError):
    """Items that wait for each other.

    Attributes:
        item: One of them.
    """

    def __init__(self, item: Any) -> None:
        """Name an item that waits for itself."""
        super().__init__(f"{item!r} waits for itself")
        self.item = item


def in_order(
    items: Sequence[T],
    needs: Callable[[T], Iterable[T]],
    key: Callable[[T], Any] | None = None,
) -> list[T]:
    """Return items so that each follows those that it needs.

    Args:
        items: The items, each once.
        needs: Returns the items that come before one; others than ``items`` do not count.
        key: Of the items that could come next, the one with the least key does; no two have the
            same. Without it, what an item made possible follows it at once where it can, which
            keeps few values alive.

    Raises:
        CycleError: if items need each other.

    References:
        A. B. Kahn, Topological sorting of large networks, 1962.
    """
    missing: dict[T, int] = {}
    users: dict[T, list[T]] = {item: [] for item in items}
    for item in items:
        before = [other for other in dict.fromkeys(needs(item)) if other in users]
        missing[item] = len(before)
        for other in before:
            users[other].append(item)
    order = (_depth_first if key is None else _least_first(key))(items, users, missing)
    if len(order) < len(users):
        raise CycleError(next(item for item in items if missing[item]))
    return order


def _depth_first(items: Sequence[T], users: dict[T, list[T]], missing: dict[T, int]) -> list[T]:
    ready = [item for item in reversed(items) if not missing[item]]
    order = []
    while ready:
        item = ready.pop()
        order.append(item)
        for user in users[item]:
            missing[user] -= 1
            if not missing[user]:
                ready.append(user)
    return order


def _least_first(
    key: Callable[[T], Any],
) -> Callable[[Sequence[T], dict[T, list[T]], dict[T, int]], list[T]]:
    def sort(items: Sequence[T], users: dict[T, list[T]], missing: dict[T, int]) -> list[T]:
        ready = [(key(item), item) for item in items if not missing[item]]
        heapq.heapify(ready)
        order = []
        while ready:
            _, item = heapq.heappop(ready)
            order.append(item)
            for user in users[item]:
                missing[user] -= 1
                if not missing[user]:
                    heapq.heappush(ready, (key(user), user))
        return order

    return sort
