"""Handling the loss of another rank.

Where the job goes on without it, steps that need it fail, those of its sessions are cancelled, and
what it had admitted returns. Otherwise the next step of each session raises the error, so that a
program can save what it has. As long as it runs steps for that, this rank says so to the others,
who wait for it (``saving``); what it does not end by itself ends here, with exit code 75, on which
``python -m headrace run --max-restarts`` starts anew.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, final

from headrace.errors import TaskLostError
from headrace_mpi.launcher.status_lines import tell
from headrace_mpi.membership.saving import GRACE_S, SAVING_S, SAY_S

if TYPE_CHECKING:
    from headrace_mpi.membership.fault_tolerance import FaultTolerance
    from headrace_mpi.membership.members import Member
    from headrace_mpi.steps.client import Client
    from headrace_mpi.transport.transport import Transport
    from headrace_mpi.world import World


@final
class Losses:
    """Tells of ranks that are slow or lost, and ends this one where the job needs a lost one."""

    def __init__(
        self,
        world: World,
        client: Client,
        transport: Transport,
        fault_tolerance: FaultTolerance,
        go_on: Callable[[int], object],
        told: Callable[[], object],
        saves: Callable[[], object],
        is_idle: Callable[[], bool],
    ) -> None:
        """Know of no loss.

        Args:
            world: The ranks.
            client: This rank's sessions, whose steps fail.
            transport: To which the lost rank is nobody any more.
            fault_tolerance: Says without whom the job goes on.
            go_on: Called with a rank without which it does, before steps that need it fail.
            told: Called when this rank has told of a loss that ends it.
            saves: Called again and again while the program still saves.
            is_idle: Whether this rank has nothing more to do, and nobody needs it any more.
        """
        self._world = world
        self._client = client
        self._transport = transport
        self._fault_tolerance = fault_tolerance
        self._go_on = go_on
        self._told = told
        self._saves = saves
        self._is_idle = is_idle
        self._lock = threading.Lock()
        self._first: TaskLostError | None = None

    def slow(self, what: str, member: Member) -> None:
        """Report a rank of which nothing is heard, and what waits for it."""
        own = self._client.where(self._transport.rank)
        who = f"{member.task} (rank {member.rank}, host {member.host}, pid {member.pid})"
        lines = [f"headrace: {own}: {who} gives {what}"]
        lines += [f"  {wait}" for wait in self._client.waits()]
        sys.stderr.write("\n".join(lines) + "\n")

    def lost(self, error: TaskLostError, rank: int) -> None:
        """Fail what waits for a rank that is lost; end this one after a while, or go on."""
        self._transport.forget(rank)
        waits = self._client.waits(rank)
        if waits:
            error = TaskLostError(f"{error}; {'; '.join(waits)}")
        tell(f"lost {rank}")
        self._world.lost_somebody = True
        why = self._fault_tolerance.lose(rank)
        if not why:
            self._world.hooks.say(f"goes on without a worker: {error}")
            self._go_on(rank)
            self._client.lose(rank, error, tell=False)
            return
        if self._fault_tolerance.may_lose(rank):
            error = TaskLostError(f"{error}; {why}")
        # From now on a failure is the job's.
        self._world.hooks.leave_alone = None
        with self._lock:
            first = self._first is None
            if first:
                self._first = error
        if first:
            self._client.flight_dump.failed(error)
            self._world.hooks.tell_loss(error)
            self._told()
        self._client.lose(rank, error)
        if first:
            threading.Thread(target=self._end, args=(self._first,), name="headrace-loss").start()

    def _end(self, error: TaskLostError) -> None:
        """End this rank when its program has done nothing about the loss for a while."""
        began = time.monotonic()
        while not self._is_idle():
            now = time.monotonic()
            sign = self._client.saving.last_sign
            until = min(max(began, sign) + GRACE_S, began + SAVING_S)
            if now >= until:
                break
            if now - sign < GRACE_S:
                self._saves()
            time.sleep(min(SAY_S, until - now))
        self._world.fail(error)
