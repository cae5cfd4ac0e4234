"""Who takes part in a step: one decision for all variables, made before a gradient travels.

A replica that has computed its gradients asks to be admitted to the step. It gets a number under
which it brings all of them, or is refused: because the step that it computed for is over, because
the step has all that it needs, or because it has brought its share. Whoever applies the gradients
waits until the step is full, and takes them by their numbers, in the order of the replicas.
Afterwards each replica takes a token, on which the next step stands.

A replica that asks for its token has brought its gradients. Where the job goes on without lost
workers, a step is applied only then, so that what a lost one was admitted for, and did not bring,
returns: another replica brings it, or the step needs one fewer.

References:
    J. Chen, X. Pan, R. Monga, S. Bengio and R. Jozefowicz, "Revisiting Distributed Synchronous
    SGD", 2016, https://arxiv.org/abs/1604.00981
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, final

from headrace.errors import CancelledError, DeadlineExceededError, OutOfRangeError, listing
from headrace.extend.devices import DeviceName
from headrace.extend.runtime import outlives_tasks, watch_losses
from headrace.extend.state import Cancellation, Waiter, WaitingLine, call_after
from headrace_train.sync_replicas.tokens import Tokens

# Whose tasks are replicas; a chief beside the workers is the last of them.
WORKER = "worker"
CHIEFS = ("chief", "master")

# The index of a replica that does not say which it is, and that of a chief beside the workers.
UNKNOWN = -1
CHIEF = -2


class _Place(NamedTuple):
    """A gradient that was admitted."""

    replica: int
    # How many of the replica's were admitted to the step before.
    earlier: int
    number: int
    local_step: int


@final
class Admission:
    """Admits replicas to steps, and gives them tokens; the resource behind ``SyncReplicas``.

    Replicas that say which they are have shares: in each step as many gradients and tokens as
    the others, so that which gradients make a step does not depend on who is quick, unless there
    are backup replicas. Those that do not are served as they come.
    """

    def __init__(
        self,
        name: str,
        replicas_to_aggregate: int,
        total_num_replicas: int,
        gradients: Sequence[str],
    ) -> None:
        """Start at step 0.

        Args:
            name: The name in its container.
            replicas_to_aggregate: How many gradients make a step.
            total_num_replicas: How many replicas there are.
            gradients: What each replica brings.
        """
        self.name = name
        self._wanted = replicas_to_aggregate
        self._total = total_num_replicas
        self._lock = threading.Lock()
        self._finishers = WaitingLine(self._lock)
        # Who waits until nothing is applied.
        self._pausers = WaitingLine(self._lock)
        # Who waits for a token, by replica.
        self._lines: dict[int, WaitingLine] = {}
        self._number = 0
        # Which replica a worker is, by the index of its task.
        self._replicas: dict[int, int] = {}
        self._start()
        watch_losses(self.lose_task)

    def _start(self) -> None:
        self._step = 0
        # Whether another chief has taken the place of the first one.
        self._taken_over = False
        # Ends the step that applies gradients.
        self._applier: Cancellation | None = None
        self._ended = self._resting = False
        self._left: list[int] = []
        self._lost: set[int] = set()
        # The numbers of this step that were brought.
        self._brought: set[int] = set()
        # Who gets a token of this step, having been refused while it had all that it needs.
        self._again: set[int] = set()
        self._places: list[_Place] = []
        # Whether the step has all that it needs, and whether somebody applies it.
        self._full = self._applying = False
        # How often it was asked to apply nothing.
        self._pauses = 0
        self._tokens = Tokens(self._total, self._each)
        self._last_step: dict[int, int] = {}
        self._came = self._began = time.monotonic()
        self._longest_s = 0.0
        self._applied = self._dropped = self._waits = self._waited_us = 0

    # -- taking part

    def open(self, step: int) -> None:
        """Begin with a step: gradients and tokens of earlier ones are dropped."""
        with self._lock:
            self._ended = self._resting = False
            # Who asked for a pause was of an earlier session of the chief.
            self._pauses = 0
            # Gradients that somebody took and did not apply are gone.
            gone = self._applying
            if step != self._step or gone:
                kept = [] if gone else [p for p in self._places if p.local_step >= step]
                self._places, self._full, self._applying = kept, False, False
                self._tokens.clear()
            self._step = step
            self._began = time.monotonic()

    def take_over(self, step: int, tokens: int) -> None:
        """Go on with another chief, as the one before is lost.

        What that one was applying, perhaps in part, is brought once more: the replicas that wait
        for the next step compute this one again.

        Args:
            step: The step that the variables are at.
            tokens: How many tokens the chief was to give out at the beginning.
        """
        with self._lock:
            stale = self._finishers.clear()
            self._taken_over = True
            self._resting = False
            self._pauses = 0
            if self._applying or step != self._step:
                self._bring_again(step)
            if not self._tokens.given_at_first:
                self._tokens.add(step, tokens, initial=True)
            served = self._serve()
        gone = CancelledError(f"{self.name!r} goes on with another chief")
        _answer([*((waiter, gone) for waiter in stale), *served])

    def _bring_again(self, step: int) -> None:
        """Let the replicas bring what a lost chief did not apply in full, under the lock."""
        kept = [] if self._applying else [p for p in self._places if p.local_step >= step]
        self._places, self._full, self._applying = kept, False, False
        self._brought.intersection_update(place.number for place in kept)
        self._step = step
        self._again = set(range(self._total)).difference(self._left)
        self._began = time.monotonic()

    def join(self, replica: int, task: int = UNKNOWN) -> None:
        """Take part, or again after having left.

        Args:
            replica: Which it is.
            task: The index of the worker that runs it, ``CHIEF`` where a chief does, ``UNKNOWN``
                for others.
        """
        with self._lock:
            replica = self._known(replica)
            if task >= 0 or task == CHIEF:
                self._replicas[task] = replica
            if replica in self._left:
                self._left.remove(replica)

    def leave(self, replica: int) -> None:
        """Take no part any more: steps need fewer gradients, and when all have left, none come."""
        with self._lock:
            replica = self._known(replica)
            if replica == UNKNOWN or replica not in self._left:
                self._left.append(replica)
            served = self._serve()
        _answer(served)

    def lose_task(self, task: DeviceName) -> None:
        """Take no part for a worker that is lost, and return what it was admitted for."""
        with self._lock:
            beside = task.job in CHIEFS and CHIEF in self._replicas
            if not beside and (task.job != WORKER or task.task is None or task.task >= self._total):
                return
            replica = self._replicas.get(CHIEF if beside else task.task or 0, UNKNOWN)
            if replica == UNKNOWN or replica not in self._left:
                self._left.append(replica)
            if replica != UNKNOWN:
                self._lost.add(replica)
                self._return(replica)
            applier = self._applier if self._applying else None
            if self._taken_over and applier is not None and applier.reason is not None:
                # It came to apply before this process knew that it was lost.
                self._bring_again(self._step)
            served = self._serve()
        _answer(served)

    def _return(self, replica: int) -> None:
        """Give back the places of a replica that it will not fill, under the lock."""
        kept = [p for p in self._places if p.replica != replica or p.number in self._brought]
        if self._applying or len(kept) == len(self._places):
            return
        self._places = kept
        self._full = 0 < self._required <= len(kept)
        if not self._full:
            self._again = set(range(self._total)).difference(self._left)

    def end(self, *, everybody: bool) -> None:
        """End the waiting of who applies gradients, until it begins again with ``open``.

        Args:
            everybody: Whether all that wait, or come, find the end of training.
        """
        with self._lock:
            self._resting = True
            self._ended = self._ended or everybody
            served = self._serve()
        _answer(served)

    # -- gradients

    def admit(self, replica: int, local_step: int) -> int:
        """Return the number under which a replica is to bring its gradients, -1 for not at all.

        Args:
            replica: Which it is.
            local_step: The step for which they were computed.

        Raises:
            OutOfRangeError: if training has ended.
        """
        with self._lock:
            if self._ended:
                raise self._end()
            replica = self._known(replica)
            self._came = time.monotonic()
            self._last_step[replica] = local_step
            earlier = sum(p.replica == replica for p in self._places)
            own = replica != UNKNOWN and earlier >= self._each
            own = own or replica in self._lost
            if local_step < self._step or self._full or own:
                self._dropped += 1
                return -1
            number, self._number = self._number, self._number + 1
            self._places.append(_Place(replica, earlier, number, local_step))
            served = self._serve()
        _answer(served)
        return number

    def admitted(self, done: Callable[[Any], None], cancellation: Cancellation | None) -> None:
        """Wait until the step is full; answer with the numbers in the order of the replicas.

        Args:
            done: Called once: with the numbers, or with an exception.
            cancellation: Ends the waiting.
        """
        with self._lock:
            waiter = self._finishers.add(done, cancellation, wanted=cancellation)
            served = self._serve()
        waiter.watch()
        _answer(served)

    def pause(self, done: Callable[[Any], None], cancellation: Cancellation | None) -> None:
        """Apply no gradients until ``resume``, and answer when none are being applied.

        Replicas go on computing, bringing gradients, and waiting for the next step.

        Args:
            done: Called once: with None, or with an exception, and then there is no pause.
            cancellation: Ends the waiting.
        """

        def answer(result: Any) -> None:
            if isinstance(result, BaseException):
                self.resume()
            done(result)

        with self._lock:
            self._pauses += 1
            waiter = self._pausers.add(answer, cancellation)
            served = self._serve()
        waiter.watch()
        _answer(served)

    def resume(self) -> None:
        """Apply gradients again, unless there are other pauses."""
        with self._lock:
            self._pauses = max(self._pauses - 1, 0)
            served = self._serve()
        _answer(served)

    def finish(self, step: int, tokens: int) -> None:
        """Begin the next step.

        Args:
            step: Which that is.
            tokens: How many tokens it has.
        """
        with self._lock:
            now = time.monotonic()
            self._longest_s = max(self._longest_s, now - self._began)
            self._began = now
            self._applied += len(self._places)
            self._places, self._full, self._applying = [], False, False
            self._brought.clear()
            self._again.clear()
            self._step = step
            self._tokens.end_step()
            self._tokens.add(step, tokens, initial=False)
            served = self._serve()
        _answer(served)

    # -- tokens

    def add_tokens(self, step: int, tokens: int) -> None:
        """Give out tokens by which replicas may begin; arguments as for ``finish``."""
        with self._lock:
            self._tokens.add(step, tokens, initial=True)
            served = self._serve()
        _answer(served)

    def token(
        self,
        replica: int,
        timeout_secs: float,
        done: Callable[[Any], None],
        cancellation: Cancellation | None,
        number: int = -1,
    ) -> None:
        """Take a token, and wait for it.

        Args:
            replica: Which it is.
            timeout_secs: After how many seconds it fails.
            done: Called once: with the step on the token, or with an exception.
            cancellation: Ends the waiting.
            number: The number under which it has brought its gradients, -1 for none.
        """
        begin = time.monotonic()
        forget: list[Callable[[], None]] = []

        def answer(result: Any) -> None:
            for function in forget:
                function()
            if forget:
                with self._lock:
                    self._waits += 1
                    self._waited_us += int((time.monotonic() - begin) * 1e6)
            done(result)

        with self._lock:
            replica = self._known(replica)
            if number >= 0 and replica not in self._lost:
                self._brought.add(number)
            line = self._lines.setdefault(replica, WaitingLine(self._lock))
            waiter = line.add(answer, cancellation)
            served = self._serve()
            if not waiter.served:

                def late() -> None:
                    if line.leave(waiter):
                        waiter.answer(self._late(timeout_secs))

                forget.append(call_after(timeout_secs, late))
        waiter.watch()
        _answer(served)

    # -- what is known

    def counters(self) -> list[int]:
        """Return what ``SyncReplicasCounters`` yields."""
        with self._lock:
            idle_us = int((time.monotonic() - self._came) * 1e6)
            counts = [self._applied, self._dropped, self._waits, self._waited_us]
            return [*counts, self._present, idle_us, int(self._longest_s * 1e6)]

    def reset(self) -> None:
        """Forget everything, and fail all that wait."""
        self.close(OutOfRangeError(f"{self.name!r} was reset"))
        with self._lock:
            self._start()

    def close(self, reason: BaseException) -> None:
        """Fail all that wait, with ``reason``."""
        with self._lock:
            waiters = self._finishers.clear() + self._pausers.clear()
            for line in self._lines.values():
                waiters += line.clear()
        for waiter in waiters:
            waiter.answer(reason)

    # -- under the lock

    @property
    def _present(self) -> int:
        return max(self._total - len(self._left), 0)

    @property
    def _there(self) -> bool:
        """Whether nobody can be lost any more whose gradients are missing."""
        if not outlives_tasks():
            return True
        known = (place.number for place in self._places if place.replica != UNKNOWN)
        return self._brought.issuperset(known)

    @property
    def _each(self) -> int:
        """How many gradients of a step one replica may bring."""
        return -(-self._wanted // self._total)

    @property
    def _required(self) -> int:
        """How many gradients make a step: backup replicas stand in for those who left."""
        return min(self._wanted, self._each * self._present)

    def _known(self, replica: int) -> int:
        return self._total - 1 if replica == CHIEF else max(replica, UNKNOWN)

    def _serve(self) -> list[tuple[Waiter, Any]]:
        """Return who gets what."""
        served: list[tuple[Waiter, Any]] = []
        over = self._ended or not self._present
        self._full = self._full or 0 < self._required <= len(self._places)
        if not self._applying:
            served += [(waiter, None) for waiter in self._pausers.clear()]
        held = self._applying or self._resting or self._pauses
        if self._full and self._there and not held:
            waiter = self._finishers.pop()
            if waiter is not None:
                self._applying, self._applier = True, waiter.wanted
                numbers = [place.number for place in sorted(self._places, key=_in_order)]
                served.append((waiter, numbers))
        for replica, line in self._lines.items():
            if line and replica in self._again:
                self._again.discard(replica)
                if all(place.replica != replica for place in self._places):
                    waiter = line.pop()
                    assert waiter is not None
                    served.append((waiter, self._step))
            while line and (step := self._tokens.take(replica)) is not None:
                waiter = line.pop()
                assert waiter is not None
                served.append((waiter, step))
        if over:
            for line in (self._finishers, *self._lines.values()):
                served += [(waiter, self._end()) for waiter in line.clear()]
        elif self._resting:
            stopped = CancelledError(f"{self.name!r} applies no gradients: the chief was stopped")
            served += [(waiter, stopped) for waiter in self._finishers.clear()]
        return served

    def _end(self) -> OutOfRangeError:
        return OutOfRangeError(
            f"synchronous training by {self.name!r} has ended at step {self._step}: the chief, or "
            "all replicas, have left"
        )

    def _late(self, seconds: float) -> DeadlineExceededError:
        with self._lock:
            state = "is full, but was not applied: does the chief run its queue runner?"
            if not self._full:
                state = f"has {len(self._places)} of {self._required} gradients{self._who()}"
            return DeadlineExceededError(
                f"no token of {self.name!r} came within {seconds:g} s: step {self._step} {state}"
            )

    def _who(self) -> str:
        """Return, for messages, whose gradients are there and whose are missing."""
        if UNKNOWN in self._last_step:
            return ""
        here = sorted({place.replica for place in self._places})
        missing = [
            f"{replica} (seen in step {self._last_step[replica]})"
            if replica in self._last_step
            else f"{replica} (never seen)"
            for replica in range(self._total)
            if replica not in here and replica not in self._left
        ]
        return (
            f", from the replicas {listing(map(str, here)) or 'none'}; missing are "
            f"{listing(missing)}"
        )


def _in_order(place: _Place) -> tuple[int, int, int]:
    # Replicas that are unknown come last, as they came.
    known = place.replica != UNKNOWN
    return (place.earlier, place.replica, 0) if known else (1 << 62, 0, place.number)


def _answer(served: Sequence[tuple[Waiter, Any]]) -> None:
    for waiter, result in served:
        waiter.answer(result)
