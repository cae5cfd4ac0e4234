"""``training.evaluation``: one evaluation of a checkpoint, with hooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import headrace as hr

_SCOPE = "eval_step"


def _get_or_create_eval_step() -> Any:
    """Return the variable that counts the steps of an evaluation."""
    graph = hr.get_default_graph()
    found = graph.get_collection(hr.GraphKeys.EVAL_STEP)
    if len(found) > 1:
        raise ValueError("Multiple tensors added to tf.GraphKeys.EVAL_STEP")
    if found:
        return found[0]
    return hr.get_variable(
        _SCOPE,
        shape=[],
        dtype=hr.int64,
        initializer=hr.zeros_initializer(),
        trainable=False,
        collections=[hr.GraphKeys.LOCAL_VARIABLES, hr.GraphKeys.EVAL_STEP],
    )


class _StopAfterNEvalsHook(hr.train.SessionRunHook):
    """Ends a session after a number of steps of evaluation; never, if that is None."""

    def __init__(self, num_evals: int | None, log_progress: bool = True) -> None:
        del log_progress
        self._num_evals = num_evals
        self._done: Any = None

    def _set_evals_completed_tensor(self, updated_eval_step: Any) -> None:
        self._done = updated_eval_step

    def before_run(self, run_context: Any) -> Any:
        """Ask for the number of steps."""
        del run_context
        return hr.train.SessionRunArgs({"evals_completed": self._done})

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """End the session when there were enough."""
        done = run_values.results["evals_completed"]
        if self._num_evals is not None and done >= self._num_evals:
            run_context.request_stop()


def _evaluate_once(
    checkpoint_path: str | None,
    master: str = "",
    scaffold: Any = None,
    eval_ops: Any = None,
    feed_dict: Any = None,
    final_ops: Any = None,
    final_ops_feed_dict: Any = None,
    hooks: Sequence[Any] | None = None,
    config: Any = None,
) -> Any:
    """Restore a checkpoint, run operations until a hook ends it, and return the last results.

    Args:
        checkpoint_path: Where the variables come from; they are initialized if None.
        master: The target of the session.
        scaffold: How to start, or None.
        eval_ops: What to run in each step: a tensor or operation, or a list or dict of them.
        feed_dict: What to feed in each step.
        final_ops: What to run when the session ends, in any structure.
        final_ops_feed_dict: What to feed then.
        hooks: Hooks of the session.
        config: Its configuration.

    Returns:
        The values of ``final_ops``; None if there are none.
    """
    hooks = list(hooks or [])
    counted = hr.assign_add(_get_or_create_eval_step(), 1, use_locking=True)
    for hook in hooks:
        if isinstance(hook, _StopAfterNEvalsHook):
            hook._set_evals_completed_tensor(counted)  # noqa: SLF001 - the name that hooks know
    steps = {"eval_ops": eval_ops, "update_eval_step": counted} if eval_ops is not None else None
    last = hr.train.FinalOpsHook(final_ops, final_ops_feed_dict)
    creator = hr.train.ChiefSessionCreator(
        scaffold=scaffold,
        checkpoint_filename_with_path=checkpoint_path,
        master=master,
        config=config,
    )
    with hr.train.MonitoredSession(session_creator=creator, hooks=[*hooks, last]) as session:
        while steps is not None and not session.should_stop():
            session.run(steps, feed_dict)
    return last.final_ops_values
