"""One rank's failure is the job's: its traceback is printed once, and all ranks end within seconds.

Without this, the other ranks of an MPI job wait for ever for the one that raised. Hooks are put in
place when Headrace's MPI world comes up, never by an import, and work for ``python x.py``,
``python -m x`` and console scripts alike.

An uncaught exception, in the main thread or any other, ends the job from the hook that Python
would have printed it from. A rank that leaves by ``sys.exit`` with a code other than zero is seen
when the interpreter ends: ``sys.exit`` is wrapped to remember the code, and the frame of the
main module tells whether the program ran to its end after all (the exit may have been caught).
"""

from __future__ import annotations

import contextlib
import dis
import inspect
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, NoReturn, final

from headrace.errors import TaskLostError
from headrace.extend.runtime import fold
from headrace_mpi.launcher.launch import Launch
from headrace_mpi.launcher.status_lines import tell
from headrace_mpi.membership.presence import FirstFailure

HARD_END_S = 5
GRACE_S = 1.5
# mpirun drops what it has not yet read of other ranks when the first one ends the job.
_READ_S = 0.2
INTERRUPTED = 130
# A rank was lost; the job may be started anew (EX_TEMPFAIL of sysexits.h).
LOST = 75


@final
class AbortHooks:
    """The hooks of one process; see the module."""

    def __init__(
        self, launch: Launch, first: FirstFailure, end_job: Callable[[int], object]
    ) -> None:
        """Make hooks that are not yet in place.

        Args:
            launch: The place of this process in the job.
            first: Tells whether another rank failed before.
            end_job: Ends all processes of the job with an exit code (``MPI_Abort``).
        """
        self._launch = launch
        self._first = first
        self._end_job = end_job
        self._ending = threading.Lock()
        self._exit_code: int | None = None
        self._told_loss = False
        self._main_frame = _main_frame()
        # Tells the others why this rank fails, where the job goes on without it.
        self.leave_alone: Callable[[str], object] | None = None
        # Waits until the others, too, have nothing more to do but to end.
        self.await_others: Callable[[], object] = lambda: time.sleep(GRACE_S)

    def install(self) -> None:
        """Put the hooks in place."""
        self._sys_hook = sys.excepthook
        self._thread_hook = threading.excepthook
        self._sys_exit = sys.exit
        sys.excepthook = self._on_uncaught
        threading.excepthook = self._on_uncaught_in_thread
        sys.exit = self._on_exit

    def _on_uncaught(
        self,
        kind: type[BaseException],
        value: BaseException,
        trace: TracebackType | None,
    ) -> None:
        own = inspect.unwrap(self._sys_hook) is not sys.__excepthook__
        self.end(value, report=self._sys_hook if own else None)

    def _on_uncaught_in_thread(self, args: Any) -> None:
        if args.exc_value is not None and args.exc_type is not SystemExit:
            thread = args.thread.name if args.thread is not None else "unknown"
            self.end(args.exc_value, where=f" in thread {thread}")

    def _on_exit(self, status: Any = None, /) -> NoReturn:
        if threading.current_thread() is threading.main_thread():
            self.note_exit(status)
        self._sys_exit(status)

    def note_exit(self, status: object) -> None:
        """Remember with what the program means to leave: a ``SystemExit.code``."""
        if status is None:
            self._exit_code = 0
        else:
            self._exit_code = status if isinstance(status, int) else 1

    @property
    def failing_exit(self) -> int:
        """The code other than zero with which the program is leaving, or 0."""
        frame = self._main_frame
        if not self._exit_code or (frame is not None and _ran_to_its_end(frame)):
            return 0
        return self._exit_code

    def leave(self) -> None:
        """At the end of the interpreter: end the job if this rank fails."""
        code = self.failing_exit
        if code and self._ending.acquire(blocking=False):
            self._let_the_first_speak()
            ends = "the job goes on" if self.leave_alone is not None else "this ends the job"
            text = f"{self._who()} left with exit code {code}; {ends}\n"
            self._finish(text, code, f"it left with exit code {code}")

    def end(
        self,
        error: BaseException,
        *,
        where: str = "",
        report: Callable[..., object] | None = None,
    ) -> None:
        """Report ``error`` and end all ranks; does not return in the thread that does so.

        Args:
            error: What this rank fails with.
            where: Said after the rank.
            report: The user's own ``sys.excepthook``, which then prints the traceback.
        """
        if not self._ending.acquire(blocking=False):
            # Another thread is ending the job: this one must not run on meanwhile.
            time.sleep(HARD_END_S)
            return
        if isinstance(error, TaskLostError):
            # Each survivor tells, and may save what it has; MPI ends them with the first.
            self.tell_loss(error)
            if self.leave_alone is None:
                # Another rank may end this one from now on.
                with contextlib.suppress(Exception):
                    sys.stdout.flush()
                tell(f"left {LOST}")
                with contextlib.suppress(Exception):
                    self.await_others()
            self._finish("", LOST, "it needed a lost rank")
        interrupted = isinstance(error, KeyboardInterrupt)
        code = INTERRUPTED if interrupted else 1
        self._let_the_first_speak()
        headline = f"{self._who()} {'was interrupted' if interrupted else 'failed'}{where}"
        if report is not None:
            _write(headline + "\n")
            with contextlib.suppress(Exception):
                report(type(error), error, error.__traceback__)
            self._finish("", code, _in_short(error))
        fold(error)
        prefix = f"[rank {self._launch.rank}] "
        trace = "".join(traceback.format_exception(error))
        lines = [prefix + line for line in trace.rstrip("\n").split("\n")]
        self._finish("\n".join([headline, *lines]) + "\n", code, _in_short(error))

    def say(self, text: str) -> None:
        """Say something of this rank in a line."""
        _write(f"{self._who()} {text}\n")

    def tell_loss(self, error: TaskLostError) -> None:
        """Tell, once, of the loss of another rank, which will end this one."""
        if not self._told_loss:
            self._told_loss = True
            notes = "".join(f"\n  {note}" for note in getattr(error, "__notes__", ()))
            _write(f"{self._who()} ends: {error}{notes}\n")

    def _let_the_first_speak(self) -> None:
        """Wait where another rank failed before: its end ends this process, too."""
        if not self._first.is_ours():
            time.sleep(GRACE_S)

    def _who(self) -> str:
        launch = self._launch
        return (
            f"headrace: rank {launch.rank} of {launch.size} (host {socket.gethostname()}, "
            f"pid {os.getpid()})"
        )

    def _finish(self, text: str, code: int, why: str) -> NoReturn:
        # Should MPI itself hang, the alarm ends this process, and the launcher the others.
        with contextlib.suppress(ValueError, AttributeError):
            if signal.getsignal(signal.SIGALRM) is signal.SIG_DFL:
                signal.alarm(HARD_END_S)
        _write(text)
        leave_alone = self.leave_alone
        if leave_alone is not None:
            tell(f"alone {code}")
            with contextlib.suppress(Exception):
                leave_alone(why)
            # MPI takes the end of a process for the end of the job, unless it was killed.
            os.kill(os.getpid(), signal.SIGKILL)
        tell(f"left {code}")
        time.sleep(_READ_S)
        with contextlib.suppress(Exception):
            self._end_job(code)
        os._exit(code)


def _in_short(error: BaseException) -> str:
    first = str(error).partition("\n")[0]
    return f"it failed with {type(error).__name__}" + (f": {first}" if first else "")


def _write(text: str) -> None:
    """Write ``text`` in one piece, so that ranks do not mix within a line."""
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    with contextlib.suppress(OSError):
        os.write(2, text.encode("utf-8", "replace"))


def _main_frame() -> FrameType | None:
    """Return the frame that runs the program's main module, if it is below this call."""
    frame: FrameType | None = sys._getframe()
    found = None
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") == "__main__":
            found = frame
        frame = frame.f_back
    return found


def _ran_to_its_end(frame: FrameType) -> bool:
    """Whether the last instruction of a finished ``frame`` was a return."""
    code = frame.f_code
    for instruction in dis.get_instructions(code):
        if instruction.offset == frame.f_lasti:
            return instruction.opname.startswith("RETURN_")
    return False
