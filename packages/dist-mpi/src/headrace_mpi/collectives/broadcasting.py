"""Broadcasting variables: those of one rank go to all others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, final

import headrace as hr
from headrace import Operation
from headrace_mpi.collectives.functions import broadcast


def broadcast_global_variables(root: int) -> Operation:
    """Return an operation that gives all global variables the values of one rank.

    The variables must have been initialised on all ranks.

    Args:
        root: The rank.
    """
    return broadcast_variables(hr.global_variables(), root)


def broadcast_variables(variables: Iterable[Any], root: int) -> Operation:
    """Return an operation that gives variables the values of one rank.

    Args:
        variables: The variables; the same on all ranks.
        root: The rank.
    """
    with hr.name_scope("broadcast_variables"):
        return hr.group(
            *(hr.assign(v, broadcast(v.read_value(), root)) for v in variables), name="done"
        )


@final
class BroadcastGlobalVariablesHook(hr.train.SessionRunHook):
    """A hook that gives all global variables the values of one rank when a session is made.

    It makes ranks start alike, after the initialiser as well as after a checkpoint that one rank
    has loaded.
    """

    def __init__(self, root_rank: int, device: str = "") -> None:
        """Make a hook.

        Args:
            root_rank: The rank whose values they are.
            device: Where the values travel from; the default device if empty.
        """
        super().__init__()
        self._root_rank = root_rank
        self._device = device
        self._operation: Operation | None = None

    def begin(self) -> None:
        """Add the operation, unless that was in this graph already."""
        graph = hr.get_default_graph()
        if self._operation is None or self._operation.graph is not graph:
            with hr.device(self._device or None):
                self._operation = broadcast_global_variables(self._root_rank)

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Broadcast."""
        session.run(self._operation)
