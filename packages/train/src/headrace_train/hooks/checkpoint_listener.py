"""``CheckpointSaverListener``: code that runs around each checkpoint."""

from __future__ import annotations

from typing import Any


class CheckpointSaverListener:
    """Code that runs around each checkpoint of a ``CheckpointSaverHook``.

    Subclasses override what they need. The step that they get is that of the checkpoint.
    """

    def begin(self) -> None:
        """Add what is needed to the default graph, before it is finalized."""

    def before_save(self, session: Any, global_step_value: Any) -> None:
        """Prepare for a checkpoint.

        Args:
            session: The session, without hooks.
            global_step_value: The step.
        """

    def after_save(self, session: Any, global_step_value: Any) -> bool | None:
        """Use a checkpoint, which is complete; return True to end the loop.

        Args:
            session: The session, without hooks.
            global_step_value: The step.
        """

    def end(self, session: Any, global_step_value: Any) -> None:
        """Do what is left to be done, when the loop ends without an error.

        Args:
            session: The session, without hooks.
            global_step_value: The step.
        """
