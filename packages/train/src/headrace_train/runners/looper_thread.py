"""Threads that call a function again and again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headrace.errors import AttributeValueError, shown
from headrace.extend.arguments import items, mapping
from headrace_train.runners.coordinator import Coordinator


class LooperThread(threading.Thread):
    """A thread that calls a function until its coordinator asks it to stop.

    The function is ``target``, or the method ``run_loop`` of a subclass. What it raises is passed
    to the coordinator, and ends the thread.
    """

    def __init__(
        self,
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., Any] | None = None,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        """Make the thread, and register it with the coordinator.

        Args:
            coord: What ends it.
            timer_interval_secs: The time from the beginning of one call to that of the next, in
                seconds; None to call again at once.
            target: What to call.
            args: With which positional arguments.
            kwargs: With which arguments by name.

        Raises:
            AttributeValueError: if ``coord`` is no coordinator, or there are arguments for no
                target.
        """
        if not isinstance(coord, Coordinator):
            raise AttributeValueError(f"coord must be a Coordinator, got {shown(coord)}")
        if target is None and (args or kwargs):
            raise AttributeValueError("args and kwargs are for a target, and there is none")
        super().__init__(daemon=True)
        self._coord = coord
        self._interval = timer_interval_secs
        self._call = target
        self._call_args = tuple(items(args or (), "args"))
        self._call_kwargs = mapping(kwargs, "kwargs")
        coord.register_thread(self)

    @staticmethod
    def loop(
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., Any],
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> LooperThread:
        """Start a thread that calls a function; arguments as for the class."""
        looper = LooperThread(coord, timer_interval_secs, target, args, kwargs)
        looper.start()
        return looper

    def isAlive(self) -> bool:  # noqa: N802 - the name of older Pythons
        """Return whether the thread runs, as ``is_alive``."""
        return self.is_alive()

    def run(self) -> None:
        """Call until a stop is requested."""
        with self._coord.stop_on_exception():
            self.start_loop()
            if self._interval is None:
                while not self._coord.should_stop():
                    self.run_loop()
            else:
                due = time.monotonic()
                while not self._coord.wait_for_stop(max(due - time.monotonic(), 0)):
                    due += self._interval
                    self.run_loop()
            self.stop_loop()

    def start_loop(self) -> None:
        """Do what is to be done before the first call; for subclasses."""

    def stop_loop(self) -> None:
        """Do what is to be done after the last call; for subclasses."""

    def run_loop(self) -> None:
        """Call the target; subclasses do something else."""
        if self._call is not None:
            self._call(*self._call_args, **self._call_kwargs)
