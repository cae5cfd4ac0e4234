"""Steps that have waited for long, and whoever is told of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from headrace.graph.operation import Operation
from headrace.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Wait:
    """An operation of a step that waits.

    Attributes:
        op: The operation, of the step's graph.
        resource: What it waits for, such as a queue; None where that is not known.
    """

    op: Operation
    resource: Any


class StallWatch(Protocol):
    """Whoever is told of steps in which nothing has happened for long.

    Attributes:
        after: How many seconds nothing may happen before it is told; told again each time.
    """

    after: float

    def stalled(self, waits: Sequence[Wait]) -> BaseException | None:
        """Take note of a step in which nothing happens.

        Args:
            waits: What its operations wait for.

        Returns:
            An error with which the step is to end, or None for it to go on waiting.
        """

    def explained(self, waits: Sequence[Wait]) -> list[str]:
        """Return lines of text on what a step waits for; none where that is not known.

        Args:
            waits: What its operations wait for.
        """


def describes(resource: Any) -> bool:
    """Whether a resource can be told of in messages; see ``session.stalls.Waitable``."""
    return hasattr(resource, "describe") and hasattr(resource, "name")
