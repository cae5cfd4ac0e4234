"""Reports steps over ranks that run for long, with what they wait for, and whom.

All ranks may live, and still wait for something that nobody makes: a queue that nobody fills, or a
rank whose program does something else. Such a step is reported once, and goes on.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Protocol, final

from headrace_mpi.steps.rendezvous import number_of


class Waiting(Protocol):
    """What is asked for the steps of this rank's sessions."""

    @property
    def steps(self) -> list[int]:
        """The steps that run."""

    def waits(self) -> list[str]:
        """Return who waits for what and whom, for messages."""


@final
class StepStalls:
    """Looks, each time it is asked to, for steps that have run for long."""

    def __init__(
        self, client: Waiting, who: str, after_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Know of no steps.

        Args:
            client: Knows the steps.
            who: How messages name this rank.
            after_s: After how many seconds a step is reported.
            clock: Returns the time in seconds.
        """
        self._client = client
        self._who = who
        self._after_s = after_s
        self._clock = clock
        self._since: dict[int, float] = {}
        self._told: set[int] = set()

    def look(self) -> None:
        """Report the steps that have run for too long by now."""
        now = self._clock()
        running = self._client.steps
        self._since = {step: self._since.get(step, now) for step in running}
        self._told.intersection_update(running)
        late = [
            step
            for step, since in self._since.items()
            if now - since >= self._after_s and step not in self._told
        ]
        if not late:
            return
        self._told.update(late)
        steps = ", ".join(str(number_of(step)) for step in late)
        lines = [f"headrace: {self._who}: step {steps} runs for {self._after_s:g} s and more"]
        lines += [f"  {wait}" for wait in self._client.waits()]
        sys.stderr.write("\n".join(lines) + "\n")
