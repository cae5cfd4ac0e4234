"""What a participant's module offers to the harness; imports the standard library only.

A participant's module has one function, ``build(request: Request) -> Participant``. It runs in
a process of its own, so it may import and configure whatever its library wants.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from benchmarks.memory import METER


class UnavailableError(Exception):
    """A way to run a workload that this installation does not offer; it says what is missing."""


@dataclass(frozen=True)
class Request:
    """What the controller asks a participant's module to build.

    Attributes:
        peer: key of the peer in ``benchmarks.peers.PEERS``.
        variant: which of the peer's ways to run the workload; "" where there is one.
        threads: number of threads that the participant may use.
        workload: name of the workload, for modules that build several.
    """

    peer: str
    variant: str
    threads: int
    workload: str = ""


@dataclass(frozen=True)
class Sample:
    """What one timed round measured.

    Attributes:
        seconds: time of one step, in seconds.
        memory_bytes: peak resident memory up to now, in bytes.
        step_bytes: peak resident memory of the rounds that count, over what the process had
            after its imports, in bytes; None where a round is no series of steps.
        more_seconds: further times of the round, in seconds, by the name that the workload has
            for them.
    """

    seconds: float
    memory_bytes: int
    step_bytes: int | None = None
    more_seconds: Mapping[str, float] = field(default_factory=dict)


class Participant(Protocol):
    """One way to run a workload, built and ready to be timed."""

    def round(self) -> Sample:
        """Run one timed round."""
        ...

    def loss(self) -> float | None:
        """Return the number on which all participants must agree, None if there is none."""
        ...


def _nothing() -> None:
    """Finish a step that is complete when its call returns."""


def _no_loss() -> None:
    """Stand for the loss of a workload that has none."""


@dataclass(frozen=True)
class StepLoop:
    """A participant that calls one function many times per round.

    Attributes:
        step: called once per step with the elements of one feed.
        feeds: the arguments of the steps of one round.
        finish: waits for work that ``step`` left running; timed.
        final_loss: gives the loss after the last round.
        lead_in: number of untimed steps before each round, which bring code and data back into
            the caches that other participants have used since.
    """

    step: Callable[..., object]
    feeds: Sequence[tuple[Any, ...]]
    finish: Callable[[], object] = _nothing
    final_loss: Callable[[], float | None] = _no_loss
    lead_in: int = 20

    def round(self) -> Sample:
        """Run all feeds once, and divide the time by their number."""
        step, feeds = self.step, self.feeds
        for feed in feeds[: self.lead_in]:
            step(*feed)
        self.finish()
        start = time.perf_counter()
        for feed in feeds:
            step(*feed)
        self.finish()
        elapsed = time.perf_counter() - start
        return Sample(elapsed / len(feeds), METER.peak(), METER.over_imports())

    def loss(self) -> float | None:
        """Return the loss after all steps so far."""
        return self.final_loss()
