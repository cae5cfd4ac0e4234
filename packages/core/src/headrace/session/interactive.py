"""A session for shells and notebooks."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from headrace.graph.graph import Graph
from headrace.graph.scope import use_graph
from headrace.session.session import Session


class InteractiveSession(Session):
    """A session that is the default one from its making until it is closed.

    ``tensor.eval()`` and ``operation.run()`` find it without a ``with`` block.
    """

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        """Open a session and make it, and the graph that is given, the defaults of this thread.

        Args:
            target: As for ``Session``.
            graph: As for ``Session``.
            config: As for ``Session``.
        """
        super().__init__(target, graph, config)
        self._defaults = ExitStack()
        if graph is not None:
            self._defaults.enter_context(use_graph(graph))
        self._defaults.enter_context(self.as_default())

    def close(self) -> None:
        """End the session; what was the default before is so again."""
        super().close()
        defaults, self._defaults = self._defaults, ExitStack()
        defaults.close()
