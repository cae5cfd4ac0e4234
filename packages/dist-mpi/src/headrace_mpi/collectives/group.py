"""A group: the ranks that run collectives together, and their steps one after the other.

Steps with collectives are numbered on every rank by the order in which they begin. Two that run at
once on one rank could begin in another order elsewhere, so the second is refused. A step that
fails before its first collective has taken no number: the others wait for the next try.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol, final

import numpy as np

from headrace.errors import (
    AbortedError,
    CancelledError,
    ClusterError,
    DeadlineExceededError,
    FailedPreconditionError,
    listing,
)
from headrace.extend.runtime import Cancellation, Wakeup
from headrace_mpi.collectives.group_step import Done, GroupStep, digest_of
from headrace_mpi.collectives.parts import Array, Probe
from headrace_mpi.collectives.planning import text_of
from headrace_mpi.collectives.reduction_buffers import ReductionBuffers
from headrace_mpi.collectives.values import Algorithm, Link
from headrace_mpi.transport import wire
from headrace_mpi.transport.buffers import Buffers
from headrace_mpi.transport.wire import Frame, Kind

KINDS = (Kind.COLLECTIVE, Kind.COLLECTIVE_PLAN, Kind.COLLECTIVE_FAILED)
# How often the time of a collective is looked at before it is over, and after which part of it
# it is said that a step waits.
_TICKS = 20
_TOLD_AFTER = 0.2
_MOST_LISTED = 3
_LATE = (
    "  a rank that has not come runs something else, is slow or is stopped; give it longer with "
    "HEADRACE_COLLECTIVE_TIMEOUT"
)


class GroupTransport(Protocol):
    """What a group needs of a transport."""

    rank: int

    def on(self, kind: Kind, handler: Callable[[int, Frame], Any]) -> None:
        """Dispatch arriving frames of a kind."""

    def send(self, rank: int, frame: Frame) -> bool:
        """Send a frame to a rank."""

    def wait(self, waiter: Wakeup, timeout_s: float | None = None) -> bool:
        """Wait until woken, receiving meanwhile; return whether it was in time."""

    def is_near(self, rank: int) -> bool:
        """Whether a rank can be reached through memory that it shares with this one."""


@final
class Group:
    """The ranks that run collectives together.

    Attributes:
        rank: The number of this process in the group.
        size: How many ranks it has.
        others: The numbers of the others.
        having: For hashes of plans, the other ranks that are known to have the plan.
        announced: The hashes of plans that this rank has told the others.
        plans: The plans of hashes, as far as known.
        digests: For ranks and steps, the hash of the plan that the rank runs.
        readable: The process id of ranks whose memory this one can read, and they its.
        timeout_s: How long a collective may go without a sign of life of others.
        told: The last step of which it was said that it waits for long.
        gone: Ranks that will not come any more, and why.
        probe: Lets others see whether they can.
        buffers: Memory for results.
        reduction_buffers: Memory for results that all ranks make together.
    """

    def __init__(self, transport: GroupTransport, members: Sequence[int], timeout_s: float) -> None:
        """Make a group, before the transport starts to receive.

        Args:
            transport: Carries the frames. One group alone uses it.
            members: The ranks of the transport that take part, in the order of the group.
            timeout_s: How long a collective may go without a sign of life of others.
        """
        self._transport = transport
        self._members = tuple(members)
        self._number = {member: place for place, member in enumerate(self._members)}
        self.timeout_s = timeout_s
        self.rank = self._number[transport.rank]
        self.size = len(self._members)
        self.others = [rank for rank in range(self.size) if rank != self.rank]
        self.having: dict[int, set[int]] = {}
        self.announced: set[int] = set()
        self.plans: dict[int, tuple[str, ...]] = {}
        self.digests: dict[tuple[int, int], int] = {}
        self.readable: dict[int, int] = {}
        self.gone: dict[int, BaseException] = {}
        self.probe = Probe()
        self.buffers = Buffers()
        near = all(transport.is_near(member) for member in members if member != transport.rank)
        self.reduction_buffers = ReductionBuffers(self.rank, self.size, near)
        self._lock = threading.RLock()
        self._begun = 0
        self._now: GroupStep | None = None
        self._early: dict[int, list[tuple[int, Frame]]] = {}
        self._closed: BaseException | None = None
        self._watch: threading.Thread | None = None
        self._stop = threading.Event()
        self.told = 0
        for kind in KINDS:
            transport.on(kind, self._arrived)

    def name(self, rank: int) -> str:
        """Return how messages name a rank."""
        return f"rank {rank}"

    # -- what steps use

    def send(self, rank: int, frame: Frame) -> None:
        """Send a frame to a rank of the group."""
        self._transport.send(self._members[rank], frame)

    def wait(self, waiter: Wakeup, timeout_s: float | None = None) -> bool:
        """Wait until woken, receiving for the group meanwhile; return whether it was in time."""
        return self._transport.wait(waiter, timeout_s)

    def is_near(self, rank: int) -> bool:
        """Whether a rank gets what is sent to it in memory that it shares with this one."""
        return self._transport.is_near(self._members[rank])

    def dtype(self, code: int) -> np.dtype[Any]:
        """Return the dtype of a code on the wire."""
        return wire.dtype_of(code)

    def dtype_code(self, dtype: np.dtype[Any]) -> int:
        """Return the code of a dtype on the wire."""
        return wire.code_of(dtype)

    def _note_plan(self, rank: int, frame: Frame) -> None:
        """Remember what a rank told of its step and of its memory: it does so once."""
        fields = json.loads(frame.payload)
        self.plans[frame.iteration] = tuple(fields["plan"])
        self.having.setdefault(frame.iteration, set()).add(rank)
        if rank not in self.readable:
            self.readable[rank] = self.probe.reads(fields["handle"])

    def finished(self, step: GroupStep) -> None:
        """Forget what was kept for a step."""
        for key in [key for key in self.digests if key[1] <= step.number]:
            del self.digests[key]

    # -- steps

    @property
    def current(self) -> GroupStep | None:
        """The step that is under way, None where there is none."""
        return None if self._now is None or self._now.over else self._now

    def run(
        self,
        plan: tuple[str, ...],
        place: int,
        count: int,
        what: str,
        make: Callable[[Link], Algorithm],
        cancellation: Cancellation,
        done: Done,
    ) -> None:
        """Begin a collective of a step; the first one begins the step.

        Args:
            plan: The lines that describe the step's collectives.
            place: Which of them it is.
            count: How many there are.
            what: The collective, for messages.
            make: Makes what it does.
            cancellation: That of the step.
            done: Gets its outputs or an error, perhaps before this returns.

        Raises:
            FailedPreconditionError: if another step with collectives runs.
            CancelledError: if the group was closed.
        """
        with self._lock:
            step = self._now
            fresh = step is None or step.cancellation is not cancellation
            if fresh:
                step = self._begin(plan, cancellation)
            assert step is not None
            link = _Link(self, step, place, what)
            step.start(place, count, what, make(link), done)
        if fresh:
            # Without the lock: where the step is over already, this calls at once.
            cancellation.add(lambda reason: self._cancelled(step, reason))

    def _begin(self, plan: tuple[str, ...], cancellation: Cancellation) -> GroupStep:
        if self._closed is not None:
            raise self._closed
        if self._now is not None and not self._now.over:
            raise FailedPreconditionError(
                "another step with collectives runs on this rank: other ranks may begin the two "
                "in another order, and would take one for the other; run steps with collectives "
                "one after the other, in one thread\n"
                f"  it has {text_of(self._now.plan[0])}, and this one {text_of(plan[0])}"
            )
        self._begun += 1
        self.plans[digest_of(plan)] = plan
        step = self._now = GroupStep(self, self._begun, plan, cancellation)
        for rank, frame in self._early.pop(self._begun, ()):
            step.arrived(rank, frame)
        if self._watch is None:
            self._watch = threading.Thread(
                target=self._keep_time, name="headrace-collectives", daemon=True
            )
            self._watch.start()
        return step

    def _cancelled(self, step: GroupStep, reason: BaseException) -> None:
        with self._lock:
            if not step.over:
                step.fail(_told(reason, self.rank))

    # -- what comes

    def _arrived(self, source: int, frame: Frame) -> None:
        rank = self._number.get(source)
        if rank is None:
            raise ClusterError(f"rank {source} sent a collective to a group that it is not in")
        with self._lock:
            if not frame.step:
                self.lost(rank, CancelledError(frame.text))
                return
            if frame.kind is not Kind.COLLECTIVE_FAILED and frame.step >= self._begun:
                self.digests[rank, frame.step] = frame.iteration
            step = self._now
            if frame.kind is Kind.COLLECTIVE_PLAN:
                # Also of a step that is over here: the rank will not tell it again.
                self._note_plan(rank, frame)
                if step is not None and frame.step < step.number:
                    step.agree()
            if frame.step > self._begun:
                self._early.setdefault(frame.step, []).append((rank, frame))
            elif step is not None and frame.step == step.number:
                step.arrived(rank, frame)

    def lose_member(self, member: int, reason: BaseException) -> None:
        """Fail what waits for a rank of the transport, if it is in the group."""
        rank = self._number.get(member)
        if rank is not None:
            self.lost(rank, reason)

    def lost(self, rank: int, reason: BaseException) -> None:
        """Fail what waits, or will wait, for a rank that will not come any more."""
        with self._lock:
            self.gone[rank] = reason
            if self._now is not None and not self._now.over:
                self._now.check_gone()

    # -- time

    def _keep_time(self) -> None:
        while not self._stop.wait(min(max(self.timeout_s / _TICKS, 0.02), 1.0)):
            with self._lock:
                step = self._now
                if step is None or step.over:
                    continue
                idle = time.monotonic() - step.moved
                if idle >= self.timeout_s:
                    lines = [*self._waits(step, idle), _LATE]
                    step.fail(DeadlineExceededError("\n".join(lines)))
                elif idle >= self.timeout_s * _TOLD_AFTER and self.told < step.number:
                    self.told = step.number
                    sys.stderr.write("headrace: " + "\n".join([*self._waits(step, idle), ""]))

    def _waits(self, step: GroupStep, idle: float) -> list[str]:
        """Return lines that say for whom a step has waited, and in what."""
        waits = [(what, ranks) for what, ranks in step.waits() if ranks]
        ranks = listing(sorted({f"rank {rank}" for _, found in waits for rank in found}))
        first = f"rank {self.rank} waited {idle:.1f} s for {ranks or 'the rest of its own step'}"
        return [first, *(f"  in {what}" for what, _ in waits[:_MOST_LISTED])]

    def close(self, reason: str = "its program has ended") -> None:
        """Tell the others that this rank takes part no more."""
        with self._lock:
            if self._closed is not None:
                return
            self._closed = CancelledError(f"the collectives were closed: {reason}")
            self._stop.set()
            if self._now is not None and not self._now.over:
                self._now.fail(self._closed)
            for rank in self.others:
                if rank not in self.gone:
                    self.send(rank, Frame(Kind.COLLECTIVE_FAILED, payload=reason.encode()))
            self.reduction_buffers.close()


def _told(reason: BaseException, rank: int) -> BaseException:
    """Return what other ranks are told when a step is cancelled here."""
    return AbortedError(f"rank {rank} gave up the step: {reason}")


@final
class _Link:
    """What an algorithm sees of its group."""

    def __init__(self, group: Group, step: GroupStep, place: int, what: str) -> None:
        self.rank = group.rank
        self.size = group.size
        self.buffers = group.buffers
        self.reduction_buffers = group.reduction_buffers
        self.what = what
        self._step = step
        self._place = place

    def give(self, rank: int, phase: int, array: Array) -> bool:
        return self._step.give(self._place, rank, phase, array)
