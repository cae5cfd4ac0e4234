"""Noticing a graph that grows inside a loop, so that every step is a new one and memory fills."""

from __future__ import annotations

import warnings

from headrace.graph.graph import Graph

# So many steps in a row, each prepared after the same line had made operations.
LIMIT = 20


class Growth:
    """What is known of how a session's graph grows between the steps that it prepares.

    Only new steps are looked at, so that a step that was prepared before costs nothing.
    """

    __slots__ = ("_count", "_size", "_warned", "_where")

    def __init__(self) -> None:
        self._size = 0
        self._count = 0
        self._where: tuple[str, int] | None = None
        self._warned = False

    def notice(self, graph: Graph) -> None:
        """Take note of a step that is about to be prepared; warn once when the graph keeps growing.

        The sign of a loop is that the last new operation was made by the same line each time.
        """
        size, before = len(graph), self._size
        self._size = size
        if self._warned or size == before or not size:
            return
        last = graph.operations[-1]
        where = (last.site.filename, last.site.line)
        self._count = self._count + 1 if where == self._where else 1
        self._where = where
        if self._count < LIMIT:
            return
        self._warned = True
        warnings.warn(
            f"the graph grows in a loop: {LIMIT} steps in a row were new ones, each after the line "
            f"below had added operations ({size} by now), so that every step is planned anew and "
            "memory fills. Build the graph once before the loop, and feed what changes into a "
            f"placeholder\n  the last is {last.type} {last.name!r}\n  at {last.site}",
            RuntimeWarning,
            stacklevel=4,
        )
