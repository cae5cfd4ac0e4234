"""The hook that begins and ends synchronous training."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, final

from headrace.errors import AttributeValueError, FailedPreconditionError
from headrace_train.hooks import SessionRunHook
from headrace_train.monitored.session_manager import not_ready

if TYPE_CHECKING:
    from headrace_train.sync_replicas.optimizer import SyncReplicasOptimizer

_log = logging.getLogger("headrace.train")

# The chief ends when no replica has come for so many seconds, and for so many of the longest steps.
_PATIENCE_SECS = 1.0
_PATIENCE_STEPS = 10


@final
class SyncReplicasHook(SessionRunHook):
    """Begins and ends the part of one replica in synchronous training.

    A replica whose loop ends, for instance because its data do, leaves; steps need fewer gradients
    then. The chief applies the gradients of the others until they have left, too, or none has come
    for long; then training ends for all.
    """

    def __init__(
        self, sync_optimizer: SyncReplicasOptimizer, is_chief: bool, num_tokens: int
    ) -> None:
        """Choose whose hook it is.

        Args:
            sync_optimizer: The optimizer.
            is_chief: Whether the session is that of the chief.
            num_tokens: How many tokens the chief gives out at the beginning; -1 for as many as a
                step has gradients.
        """
        self._sync_optimizer = sync_optimizer
        self._is_chief = is_chief
        self._num_tokens = num_tokens

    def begin(self) -> None:
        """Look up what there is to run.

        Raises:
            AttributeValueError: if the optimizer has no gradients yet.
        """
        optimizer = self._sync_optimizer
        if optimizer.operations is None:
            raise AttributeValueError(
                "SyncReplicasOptimizer.apply_gradient should be called before using the hook."
            )
        self._ready_for_local_init_op = optimizer.ready_for_local_init_op
        self._local_init_op: Any = optimizer.local_step_init_op
        self._init_tokens_op: Any = None
        if self._is_chief:
            self._begin_as_chief()

    def _begin_as_chief(self) -> None:
        self._local_init_op = self._sync_optimizer.chief_init_op
        self._init_tokens_op = self._sync_optimizer.get_init_tokens_op(self._num_tokens)

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Begin.

        Args:
            session: The session, without hooks.
            coord: What ends the thread that applies the gradients.

        Raises:
            FailedPreconditionError: if variables have no value yet.
            AttributeValueError: if the cluster has too few workers.
        """
        optimizer = self._sync_optimizer
        reason = not_ready(self._ready_for_local_init_op, session)
        if reason is not None:
            raise FailedPreconditionError(
                "Init operations did not make model ready for SyncReplicasOptimizer local_init. "
                f"Init op: {self._local_init_op.name}, error: {reason}"
            )
        session.run(self._local_init_op)
        if not self._is_chief:
            return
        optimizer.check_tasks([device.name for device in session.list_devices()])
        session.run(self._init_tokens_op)
        self._apply(session, coord)

    def become_chief(self, session: Any, coord: Any) -> None:
        """Apply the gradients from now on, in place of a chief that is lost.

        What that one was applying is computed and brought once more; where it was lost in the
        middle of that, some variables have moved already.

        Args:
            session: The session, without hooks.
            coord: What ends the thread that applies the gradients.
        """
        if self._is_chief:
            return
        self._is_chief = True
        self._begin_as_chief()
        session.run(self._sync_optimizer.take_over_op(self._num_tokens))
        self._apply(session, coord)

    def _apply(self, session: Any, coord: Any) -> None:
        """Start the thread that applies the gradients."""
        self._sync_optimizer.get_chief_queue_runner().create_threads(
            session, coord=coord, daemon=True, start=True
        )

    def end(self, session: Any) -> None:
        """Leave; the chief waits for the others, and ends the training.

        Args:
            session: The session, without hooks.
        """
        operations = self._sync_optimizer.operations
        assert operations is not None
        session.run(operations.leave)
        if not self._is_chief:
            return
        while True:
            *_, replicas, idle_us, longest_us = session.run(operations.counts).tolist()
            if not replicas:
                break
            if idle_us > max(_PATIENCE_SECS * 1e6, _PATIENCE_STEPS * longest_us):
                _log.info("%d replicas have not come for %.1f s", replicas, idle_us * 1e-6)
                break
            time.sleep(0.01)
        session.run(operations.end)
