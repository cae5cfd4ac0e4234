"""``CheckpointManager``: keeps the latest checkpoints of a folder, and deletes older ones."""

from __future__ import annotations

import logging
import operator
import os
import time
from typing import Any, final

from headrace import Tensor, Variable
from headrace.errors import ArgumentTypeError, AttributeValueError, shown, told
from headrace.extend.arguments import whole
from headrace_train.checkpoint.removal import remove_checkpoint
from headrace_train.checkpoint.state import get_checkpoint_state, write_state
from headrace_train.object_checkpoints.checkpoint import Checkpoint
from headrace_train.object_checkpoints.sessions import session_or_default

_log = logging.getLogger("headrace.train")


@final
class CheckpointManager:
    """Saves a ``Checkpoint`` into a folder, numbered, and deletes those that are too many.

    What it knows is in the folder's file ``checkpoint``, so that another manager goes on.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        directory: Any,
        max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float | None = None,
        checkpoint_name: str = "ckpt",
    ) -> None:
        """Take over a folder.

        Args:
            checkpoint: What is saved.
            directory: The folder, made when something is saved.
            max_to_keep: How many of the latest stay; None for all.
            keep_checkpoint_every_n_hours: One that would be deleted stays, and is no longer
                counted, where the last such one is so many hours older.
            checkpoint_name: What the names of files begin with.

        Raises:
            AttributeValueError: if ``max_to_keep`` is neither None nor positive.
        """
        if max_to_keep is not None and whole(max_to_keep, "max_to_keep") <= 0:
            raise AttributeValueError(
                f"Expected a positive integer or `None` for `max_to_keep`, got {told(max_to_keep)}."
            )
        self._checkpoint = checkpoint
        self._directory = os.fspath(directory)
        self._prefix = os.path.join(self._directory, checkpoint_name)  # noqa: PTH118 - TensorFlow's form of the path
        self._most = max_to_keep
        self._hours = keep_checkpoint_every_n_hours
        self._kept: dict[str, float] = {}
        self._latest: str | None = None
        now = time.time()
        self._preserved = now - 1.0
        state = get_checkpoint_state(self._directory)
        if state is not None:
            self._take_over(state, now)

    def _take_over(self, state: Any, now: float) -> None:
        self._latest = state.model_checkpoint_path
        self._preserved = min(state.last_preserved_timestamp, now)
        paths = list(state.all_model_checkpoint_paths)
        times = list(state.all_model_checkpoint_timestamps) or [self._preserved] * len(paths)
        for path, written in zip(paths, times, strict=False):
            if min(written, now) > self._preserved:
                self._kept[path] = min(written, now)

    @property
    def latest_checkpoint(self) -> str | None:
        """The prefix of the latest checkpoint, None where there is none."""
        return self._latest

    @property
    def checkpoints(self) -> list[str]:
        """The prefixes of those that may be deleted some day, the latest last."""
        return list(self._kept)

    def save(self, checkpoint_number: Any = None) -> str:
        """Save in the default session, and delete what is too much.

        Args:
            checkpoint_number: An integer, or a variable or tensor of one; what the checkpoint has
                counted if None. It counts in any case.

        Returns:
            The prefix.

        Raises:
            FailedPreconditionError: if there is no default session.
            CheckpointError: if it cannot be written; nothing has been deleted then.
        """
        session = session_or_default(None)
        number: Any = self._checkpoint.count(session)
        if checkpoint_number is not None:
            number = checkpoint_number
            if isinstance(number, Tensor | Variable):
                number = session.run(number)
        try:
            number = operator.index(number)
        except TypeError:
            raise ArgumentTypeError(
                f"checkpoint_number must be a whole number, got {shown(checkpoint_number)}"
            ) from None
        path = self._checkpoint.write(f"{self._prefix}-{number}", session)
        self._kept.pop(path, None)
        self._kept[path] = time.time()
        self._latest = path
        # Before and after: a crash in between leaves nothing named that is not there.
        self._record()
        self._sweep()
        self._record()
        return path

    def _sweep(self) -> None:
        while self._most is not None and len(self._kept) > self._most:
            path = next(iter(self._kept))
            written = self._kept.pop(path)
            if self._hours and written - self._hours * 3600.0 >= self._preserved:
                self._preserved = written
                _log.info("%s stays: the last one that stays is %s hours older", path, self._hours)
                continue
            remove_checkpoint(path)

    def _record(self) -> None:
        assert self._latest is not None
        write_state(
            self._directory,
            self._latest,
            list(self._kept),
            relative=True,
            all_model_checkpoint_timestamps=list(self._kept.values()),
            last_preserved_timestamp=self._preserved,
        )
