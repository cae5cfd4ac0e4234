"""What a reader's handle stands for: it makes records of work that it takes from a queue."""

from __future__ import annotations

import functools
import itertools
import os
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np

import headrace as hr
from headrace.errors import (
    CancelledError,
    DataLossError,
    InvalidArgumentError,
    UnimplementedError,
    shown,
)
from headrace.extend.state import Cancellation, ElementSource, WaitingLine
from headrace_io.protos import reader_state
from headrace_io.readers.run import Run, Values, cut, joined, listed

# What a reader makes: a key, which says where the value comes from, and the value.
Record: TypeAlias = tuple[bytes, bytes]
# The same of several records: their keys, and their values.
Records: TypeAlias = tuple[list[bytes], Values]
Done: TypeAlias = Callable[[Any], None]


def check_queue(queue: Any) -> ElementSource:
    """Return a queue of strings.

    Raises:
        InvalidArgumentError: if it is something else.
    """
    if not isinstance(queue, ElementSource):
        raise InvalidArgumentError(
            f"a reader takes its work from a queue, got a {type(queue).__name__}"
        )
    if list(queue.dtypes) != [hr.string]:
        raise InvalidArgumentError(
            "a reader takes its work from a queue of one component, a string; queue "
            f"{queue.name!r} has {', '.join(map(str, queue.dtypes))}"
        )
    return queue


_NOTHING = Run(listed([]), [])


class _Arrival:
    """What a queue answers, at once or later: who waits asks which, and is called in the latter."""

    def __init__(self) -> None:
        self.result: Any = None
        self._here = False
        self._then: Callable[[], None] | None = None
        self._lock = threading.Lock()

    def __call__(self, result: Any) -> None:
        self.result = result
        with self._lock:
            self._here = True
            then = self._then
        if then is not None:
            then()

    def is_here_or(self, then: Callable[[], None]) -> bool:
        """Return whether it came already; ``then`` is called when it comes if it did not."""
        with self._lock:
            if not self._here:
                self._then = then
            return self._here


class _Request:
    """A read that is being served.

    Attributes:
        queue: Where to take work.
        limit: How many records are wanted at most.
        keyed: Whether their keys are.
        answer: What to call with records, or an exception.
        cancellation: Of the step that waits.
        borrowed: Whether the thread that serves it has something else to do.
    """

    __slots__ = ("answer", "borrowed", "cancellation", "keyed", "limit", "queue")

    def __init__(
        self,
        queue: ElementSource,
        limit: int,
        answer: Done,
        cancellation: Cancellation | None,
        *,
        keyed: bool,
    ) -> None:
        self.queue = queue
        self.limit = limit
        self.keyed = keyed
        self.answer = answer
        self.cancellation = cancellation
        self.borrowed = False


class Reader:
    """A reader. Reads are served one after the other; who waits holds no thread.

    Subclasses say what the records of a piece of work are, one by one or in runs.

    Attributes:
        name: The name in its container.
        limit: How many records the read wants that is being served.
        wanted: How many of them it still lacks.
        records_produced: How many records it has made.
        work_finished: How many pieces of work it has read to the end.
    """

    # Whether its state can be stored: only that of readers for which a piece of work is a record.
    serializable: ClassVar[bool] = False
    # Whether each piece of work is one record, so that it is finished with it.
    single: ClassVar[bool] = False

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = threading.Lock()
        self._line = WaitingLine(self._lock)
        self._busy = False
        # The queue that was checked last: mostly there is one.
        self._checked: Any = None
        self._start_anew()

    def _start_anew(self) -> None:
        self.records_produced = 0
        self.work_started = 0
        self.work_finished = 0
        self._work = b""
        self._runs: Iterator[Run] | None = None
        # Whether the work at hand may have to be filled by others while it is read.
        self._blocks = False
        # What came of the last run, and how much of it was handed out.
        self._run = _NOTHING
        self._at = 0
        self.limit = self.wanted = 0
        self._failure: Exception | None = None

    def records_of(self, work: bytes) -> Iterator[Record]:
        """Yield the records of a piece of work; for those that have no ``runs_of``."""
        raise NotImplementedError

    def runs_of(self, work: bytes) -> Iterator[Run]:
        """Yield the records of a piece of work, some at once, as far as they are there."""
        records = self.records_of(work)
        while True:
            keys, values = list[bytes](), list[bytes]()
            try:
                for key, value in itertools.islice(records, self.wanted):
                    keys.append(key)
                    values.append(value)
            except Exception:
                # What comes before a failure is kept.
                if values:
                    yield Run(listed(keys), values)
                raise
            if not values:
                return
            yield Run(listed(keys), values)

    def may_block(self, work: bytes) -> bool:
        """Return whether a piece of work may have to be filled by others while it is read.

        So may what is no plain file, such as a pipe. What is not there is told at once.
        """
        try:
            return not stat.S_ISREG(Path(os.fsdecode(work)).stat().st_mode)
        except (OSError, ValueError):
            return False

    # -- reading

    def is_ready(self, queue: ElementSource, num_records: Any = 1) -> bool:
        """Return whether a read would be answered, or wait for its queue, and hold up nobody.

        Args:
            queue: Where to take work.
            num_records: How many records at most.
        """
        # Who reads holds the lock, maybe for long.
        if self._busy or not self._lock.acquire(blocking=False):
            return False
        try:
            there = len(self._run.values) - self._at
            return self._runs is None or there >= int(np.asarray(num_records)) or not self._blocks
        finally:
            self._lock.release()

    def check_queue(self, queue: Any) -> ElementSource:
        """Return a queue of strings, as the function of that name does."""
        if queue is not self._checked:
            self._checked = check_queue(queue)
        found: ElementSource = queue
        return found

    def read(
        self,
        queue: ElementSource,
        limit: int,
        done: Done,
        cancellation: Cancellation | None = None,
        *,
        keyed: bool = True,
        borrowed: bool = False,
    ) -> None:
        """Make records of one piece of work.

        Args:
            queue: Where to take work when the last piece is read to its end.
            limit: How many records at most.
            done: Called once: with keys and values, of one record at least where ``limit`` is not
                0, or with an exception.
            cancellation: Ends the waiting; no record is lost then.
            keyed: Whether keys are wanted; there are none otherwise.
            borrowed: Whether the calling thread must not be kept where work has to be filled by
                others: another one goes on then.
        """
        with self._lock:
            busy, self._busy = self._busy, True
            waiter = self._line.add(done, cancellation, (queue, limit, keyed)) if busy else None
        # Without the lock: both run what others gave.
        if waiter is None:
            request = _Request(queue, limit, done, cancellation, keyed=keyed)
            request.borrowed = borrowed
            self._serve(request)
        else:
            waiter.watch()

    def _serve(self, request: _Request | None) -> None:
        """Serve a read, and then those that wait, as far as this goes without waiting."""
        while request is not None:
            if not self._advance(request):
                return
            request = self._next()

    def _next(self) -> _Request | None:
        with self._lock:
            waiter = self._line.pop()
            if waiter is None:
                self._busy = False
                return None
        queue, limit, keyed = waiter.wanted
        return _Request(queue, limit, waiter.answer, waiter.cancellation, keyed=keyed)

    def _advance(self, request: _Request) -> bool:
        """Answer a read; False if that has to wait for its queue."""
        try:
            return self._answered(request)
        except BaseException:
            # An interrupt ends this read. Others that wait for it are served by another thread.
            following = self._next()
            if following is not None:
                threading.Thread(target=self._serve, args=(following,), daemon=True).start()
            raise

    def _answered(self, request: _Request) -> bool:
        while True:
            try:
                with self._lock:
                    records = self._produce(request.limit, keyed=request.keyed)
            except Exception as error:
                request.answer(error)
                return True
            if records is not None:
                request.answer(records)
                return True
            arrival = _Arrival()
            request.queue.take(1, arrival, request.cancellation)
            if not arrival.is_here_or(functools.partial(self._go_on, request, arrival)):
                return False
            if not self._take_up(request, arrival.result):
                return True
            if request.borrowed and self._blocks:
                # Who has something else to do does not wait for those who fill a pipe.
                request.borrowed = False
                threading.Thread(target=self._serve, args=(request,), daemon=True).start()
                return False

    def _go_on(self, request: _Request, arrival: _Arrival) -> None:
        """Serve a read whose work has come."""
        if not self._take_up(request, arrival.result) or self._advance(request):
            self._serve(self._next())

    def _take_up(self, request: _Request, result: Any) -> bool:
        """Begin the work that the queue gave; answer the read and return False if it gave none."""
        try:
            if isinstance(result, BaseException):
                raise result
            ((element,),) = result
            work = np.asarray(element, object)
            if work.size != 1:
                raise InvalidArgumentError(
                    f"a piece of work is one string, queue {request.queue.name!r} gave one of "
                    f"shape {list(work.shape)}"
                )
            with self._lock:
                self._begin(work.item())
        except Exception as error:
            request.answer(error)
            return False
        return True

    def _begin(self, work: bytes) -> None:
        self._work, self._runs, self._failure = work, self.runs_of(work), None
        self._blocks = self.may_block(work)
        self.work_started += 1

    def _finish(self) -> None:
        self._runs = None
        self.work_finished = self.work_started

    def _produce(self, limit: int, *, keyed: bool) -> Records | None:
        """Return records of the work at hand, None where new work is needed."""
        if limit == 0:
            return [], []
        if self._runs is None:
            return None
        keys, values = list[bytes](), list[Values]()
        self.limit = self.wanted = limit
        while self.wanted:
            if self._at == len(self._run.values) and not self._go_to_next_run():
                break
            start, stop = self._at, min(self._at + self.wanted, len(self._run.values))
            if keyed:
                keys += self._run.keys(start, stop)
            values.append(cut(self._run.values, start, stop))
            self._at = stop
            self.wanted -= stop - start
        if self.single and self._failure is None:
            self._finish()
        self.records_produced += limit - self.wanted
        if values:
            return keys, joined(values)
        if self._failure is not None:
            raise self._told()
        return None

    def _go_to_next_run(self) -> bool:
        """Have the next run at hand; False where the work ends, or fails: that is kept."""
        if self._runs is None or self._failure is not None:
            return False
        self._run, self._at = _NOTHING, 0
        try:
            run = next(self._runs, None)
        except Exception as error:
            self._failure = error
            return False
        except BaseException:
            # What has begun to read cannot go on: whoever reads next is told, and loses nothing
            # without a word.
            self._failure = CancelledError(
                f"reader {self.name!r} was interrupted in {shown(self._work)}; the rest of it "
                "was not read"
            )
            raise
        if run is None:
            self._finish()
            return False
        self._run = run
        return True

    def _told(self) -> Exception:
        """Return why the work at hand cannot be read, and leave it, but where it is damaged.

        Damaged files are told of again and again, until the reader is reset: nobody should take
        the rest of them for read.
        """
        failure = self._failure
        assert failure is not None
        if not isinstance(failure, DataLossError):
            self._runs = self._failure = None
        return failure

    # -- state

    def restart(self) -> None:
        """Forget the work at hand and all counts; reads that wait go on waiting."""
        with self._lock:
            self._start_anew()

    def reset(self) -> None:
        """Forget everything, and fail the reads that wait for others."""
        self.close(CancelledError(f"reader {self.name!r} was reset"))

    def close(self, reason: BaseException) -> None:
        """Close the file at hand, forget everything, and fail the reads that wait for others."""
        with self._lock:
            self._start_anew()
            waiters = self._line.clear()
        for waiter in waiters:
            waiter.answer(reason)

    def state(self) -> bytes:
        """Return the state, as TensorFlow's readers store it.

        Raises:
            UnimplementedError: if readers of this kind cannot be restored.
        """
        self._check_serializable()
        with self._lock:
            return reader_state.pack(
                self.work_started, self.work_finished, self.records_produced, self._work
            )

    def restore(self, state: bytes) -> None:
        """Become what a reader of this kind was.

        Raises:
            UnimplementedError: if readers of this kind cannot be restored.
            InvalidArgumentError: if it is no state.
        """
        self._check_serializable()
        started, finished, produced, work = reader_state.unpack(state)
        with self._lock:
            self._start_anew()
            self.work_started, self.work_finished = started, finished
            self.records_produced, self._work = produced, work
            if started > finished:
                self._runs, self._blocks = self.runs_of(work), self.may_block(work)

    def _check_serializable(self) -> None:
        if not self.serializable:
            raise UnimplementedError(
                f"the state of reader {self.name!r} cannot be stored: only WholeFileReader and "
                "IdentityReader, which are never in the middle of a file, can"
            )
