"""Waiting for checkpoints that another process writes."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING

from headrace_train.checkpoint import latest_checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_POLL_SECONDS = 1.0
# File systems may give one time to changes that lie this far apart.
_COARSE_NS = 2_000_000_000
_log = logging.getLogger("headrace.train")


def checkpoints_iterator(
    checkpoint_dir: str,
    min_interval_secs: float = 0,
    timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
) -> Iterator[str]:
    """Yield the latest checkpoint of a folder, and each that follows, as they appear.

    The folder is looked at when the next one is asked for: of several that were written in the
    meantime only the last is seen.

    Args:
        checkpoint_dir: The folder; it may come into being later.
        min_interval_secs: The time, in seconds, that lies at least between two of them.
        timeout: How many seconds to wait for one at most; for ever if None.
        timeout_fn: What is called after a timeout; true ends the iteration, false waits again.
            The iteration ends if it is None.

    Yields:
        Paths of checkpoints, for ``Saver.restore``.
    """
    found: str | None = None
    while True:
        latest = _next(checkpoint_dir, found, timeout)
        if latest is None:
            if timeout_fn is None or timeout_fn():
                _log.info("no further checkpoint in %s within %s s", checkpoint_dir, timeout)
                return
            continue
        began = time.monotonic()
        found = latest
        yield latest
        time.sleep(max(began + min_interval_secs - time.monotonic(), 0))


def _next(folder: str, last: str | None, timeout: float | None) -> str | None:
    """Wait for a checkpoint other than ``last``; return None after a timeout."""
    end = None if timeout is None else time.monotonic() + timeout
    seen: int | None = None
    while True:
        changed = _changed_ns(folder)
        # To find the latest sound one reads all of it: not again while nothing changes.
        if changed != seen or time.time_ns() - changed < _COARSE_NS:
            seen = changed
            latest = latest_checkpoint(folder)
            if latest is not None and latest != last:
                return latest
        left = _POLL_SECONDS if end is None else min(end - time.monotonic(), _POLL_SECONDS)
        if left <= 0:
            return None
        time.sleep(left)


def _changed_ns(folder: str) -> int:
    """Return when a file of a folder last came, went or took another's place, or 0."""
    try:
        return Path(folder).stat().st_mtime_ns
    except OSError:
        return 0
