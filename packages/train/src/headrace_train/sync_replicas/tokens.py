"""The tokens of synchronous training: with one, a replica computes for the step that is on it."""

from __future__ import annotations

from collections import Counter, deque
from typing import NamedTuple, final


class _Token(NamedTuple):
    step: int
    # Whether it is one of those with which training begins, and how many there were of its kind.
    initial: bool
    of: int


@final
class Tokens:
    """Those that nobody has taken, and how many each replica has; under its owner's lock.

    Replicas that say which they are have equal shares of the tokens of a step. Those that do not,
    whose numbers are below 0, take them as they come.

    Attributes:
        given_at_first: Whether those with which training begins were given out.
    """

    def __init__(self, replicas: int, each: int) -> None:
        """Have none.

        Args:
            replicas: How many replicas there are.
            each: How many tokens of a step one replica may take.
        """
        self.given_at_first = False
        self._replicas = replicas
        self._each = each
        self._left: deque[_Token] = deque()
        # How many of a kind a replica has taken.
        self._taken: Counter[tuple[int, int, bool]] = Counter()

    def add(self, step: int, count: int, *, initial: bool) -> None:
        """Have more.

        Args:
            step: What is on them.
            count: How many.
            initial: Whether training begins with them.
        """
        self.given_at_first = self.given_at_first or initial
        self._left.extend([_Token(step, initial, count)] * count)

    def take(self, replica: int) -> int | None:
        """Return the step on a token for a replica, None if there is none for it."""
        for token in self._left:
            kind = (replica, token.step, token.initial)
            share = -(-token.of // self._replicas) if token.initial else self._each
            if replica < 0 or self._taken[kind] < share:
                self._left.remove(token)
                self._taken[kind] += 1
                return token.step
        return None

    def end_step(self) -> None:
        """Drop those of steps: who took none would compute for nothing with it."""
        self._left = deque(token for token in self._left if token.initial)
        self._taken = Counter({kind: n for kind, n in self._taken.items() if kind[2]})

    def clear(self) -> None:
        """Drop all, and forget who has taken any."""
        self._left.clear()
        self._taken.clear()
