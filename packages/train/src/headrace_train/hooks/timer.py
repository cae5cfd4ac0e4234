"""When a hook is due: every so many steps, or seconds."""

from __future__ import annotations

import time
from typing import Protocol, final

from headrace.errors import AttributeValueError


class Timer(Protocol):
    """Says at which steps a hook is due."""

    def reset(self) -> None:
        """Forget when it was due last."""

    def should_trigger_for_step(self, step: int) -> bool:
        """Return whether it is due at a step."""

    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        """Note that it was done at a step; return how long ago the last time was."""

    def last_triggered_step(self) -> int | None:
        """Return the step at which it was done last."""


@final
class SecondOrStepTimer:
    """Says when something is due that is to be done every so many seconds, or steps."""

    def __init__(self, every_secs: float | None = None, every_steps: int | None = None) -> None:
        """Choose how often.

        Args:
            every_secs: Seconds from one time to the next.
            every_steps: Steps from one time to the next; one of both is given.

        Raises:
            AttributeValueError: if none or both are given.
        """
        if every_secs is None and every_steps is None:
            raise AttributeValueError("Either every_secs or every_steps should be provided.")
        if every_secs is not None and every_steps is not None:
            raise AttributeValueError("Can not provide both every_secs and every_steps.")
        self._every_secs = every_secs
        self._every_steps = every_steps
        self._last_step: int | None = None
        self._last_time = 0.0

    def reset(self) -> None:
        """Forget when it was due last: it is due at once."""
        self._last_step = None

    def should_trigger_for_step(self, step: int) -> bool:
        """Return whether it is due at a step: at first, and later when enough has passed.

        Args:
            step: The step; it is never due twice at one.
        """
        last = self._last_step
        if last is None:
            return True
        if step == last:
            return False
        if self._every_steps is not None:
            return bool(step >= last + self._every_steps)
        assert self._every_secs is not None
        return time.time() >= self._last_time + self._every_secs

    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        """Note that it was done.

        Args:
            step: At which step.

        Returns:
            Seconds and steps since the last time, None for both at the first time.
        """
        now = time.time()
        passed: tuple[float | None, int | None] = (None, None)
        if self._last_step is not None:
            passed = now - self._last_time, step - self._last_step
        self._last_time, self._last_step = now, step
        return passed

    def last_triggered_step(self) -> int | None:
        """Return the step at which it was done last, None if it was not."""
        return self._last_step


@final
class NeverTriggerTimer:
    """A timer of what is never due."""

    def reset(self) -> None:
        """Do nothing."""

    def should_trigger_for_step(self, step: int) -> bool:
        """Return False."""
        del step
        return False

    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        """Return None for seconds and steps."""
        del step
        return None, None

    def last_triggered_step(self) -> int | None:
        """Return None."""
        return None
