"""Partial runs: one step that is run piece by piece, as its feeds come.

Every piece is a step of its own. What an operation yielded for later pieces is kept, and fed to
them; an operation that ran in one piece does not run again in another.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from headrace.errors import (
    FailedPreconditionError,
    FeedError,
    InvalidArgumentError,
    shown,
)
from headrace.graph.graph import Graph
from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace.session.feeds import binder, feed_parts, feed_tensors
from headrace.session.fetches import Fetches, flatten

# Values that exist inside a step only: what yields them runs again in each piece that needs it.
_HANDLES = "resource"


class RunPiece(Protocol):
    """Runs one piece of a step."""

    def __call__(
        self,
        feeds: Sequence[Tensor],
        values: Sequence[Any],
        fetches: Fetches,
        done: frozenset[Operation],
    ) -> list[Any]:
        """Return the values of the tensors of ``fetches``.

        Args:
            feeds: The tensors that are fed.
            values: Their values, as arrays.
            fetches: What to fetch.
            done: Operations that ran, for which nothing waits any more.
        """


class PartialRun:
    """A step that is set up, and then run piece by piece.

    Pieces run one at a time. One that is refused, or fails, leaves the run as it was.
    """

    def __init__(self, graph: Graph, fetches: Any, feeds: Sequence[Any], run: RunPiece) -> None:
        """Set up a step.

        Args:
            graph: The session's graph.
            fetches: All that any piece fetches.
            feeds: All that any piece is fed.
            run: Runs a piece.
        """
        self._graph, self._run = graph, run
        flat = flatten(fetches, graph)
        self._unfetched = dict.fromkeys(flat.tensors)
        self._fetches = frozenset(flat.tensors)
        self._targets = flat.targets
        self._unfed = dict.fromkeys(t for feed in feeds for t in feed_tensors(feed, graph))
        self._feeds = frozenset(self._unfed)
        self._values: dict[Tensor, Any] = {}
        self._done: frozenset[Operation] = frozenset()
        roots = [*(t.op for t in flat.tensors if t not in self._feeds), *flat.targets]
        self._whole = _upstream(roots, self._feeds, self._done)
        self._lock = threading.Lock()

    @property
    def finished(self) -> bool:
        """Whether everything was fetched, and everything fed."""
        return not self._unfetched and not self._unfed

    def run(self, fetches: Any, feed_dict: Mapping[Any, Any]) -> Any:
        """Run a piece, and return what it fetches, in the structure of ``fetches``."""
        with self._lock:
            return self._run_piece(fetches, feed_dict)

    def _run_piece(self, fetches: Any, feed_dict: Mapping[Any, Any]) -> Any:
        wanted = flatten(fetches, self._graph)
        if wanted.targets:
            raise FailedPreconditionError(
                "a partial run fetches tensors only: operations run in the piece that fetches the "
                f"last of them, got {wanted.targets[0].name!r}"
            )
        for tensor in wanted.tensors:
            if tensor not in self._unfetched:
                said = "was fetched already" if tensor in self._fetches else _NOT_SET_UP
                raise InvalidArgumentError(f"{tensor.name!r} {said}")
        values = {**self._values, **self._bound(feed_dict)}
        last = len(wanted.tensors) == len(self._unfetched) and set(self._unfed) <= values.keys()
        targets = self._targets if last else ()
        roots = [*(t.op for t in wanted.tensors if t not in values), *targets]
        needed = _upstream(roots, values.keys(), self._done)
        self._check_fed(needed, values)
        kept = self._kept(needed, values, set(wanted.tensors))
        used = {t for op in needed for t in op.inputs} | set(wanted.tensors)
        feeds = [tensor for tensor in values if tensor in used]
        asked = Fetches(tuple(dict.fromkeys((*wanted.tensors, *kept))), targets, list)
        given = [values[tensor] for tensor in feeds]
        found = self._run(feeds, given, asked, self._done) if roots else []
        results = dict(zip(asked.tensors, found, strict=True)) if roots else values
        # What the caller gets, it may change.
        copied = set(kept) | values.keys()
        own = [np.copy(results[t])[()] if t in copied else results[t] for t in wanted.tensors]
        fetched = wanted.rebuild(own)
        self._values = {**values, **{tensor: results[tensor] for tensor in kept}}
        self._done |= {op for op in needed if not _yields_handle(op)}
        for tensor in wanted.tensors:
            del self._unfetched[tensor]
        self._unfed = {t: None for t in self._unfed if t not in values}
        return fetched

    def _bound(self, feed_dict: Mapping[Any, Any]) -> dict[Tensor, Any]:
        """Return what is fed, as arrays."""
        bound: dict[Tensor, Any] = {}
        for key, value in feed_dict.items():
            tensors = feed_tensors(key, self._graph)
            for tensor, part in zip(tensors, feed_parts(key, value, len(tensors)), strict=True):
                if tensor not in self._unfed:
                    said = "was fed already" if tensor in self._feeds else _NOT_SET_UP
                    raise FeedError(f"{tensor.name!r} {said}")
                bound[tensor] = np.copy(binder(tensor)(part))
        return bound

    def _check_fed(self, needed: set[Operation], values: Mapping[Tensor, Any]) -> None:
        missing = [t for t in self._unfed if t not in values and t.op in needed]
        if missing:
            raise FeedError(
                f"this piece needs {', '.join(repr(t.name) for t in missing)}, which was not fed "
                "so far"
            )

    def _kept(
        self, needed: set[Operation], values: Mapping[Tensor, Any], fetched: set[Tensor]
    ) -> list[Tensor]:
        """Return the tensors of a piece that later pieces need."""
        later = self._whole - needed - self._done
        used = {t for op in later for t in op.inputs}
        used.update(t for t in self._unfetched if t not in fetched)
        yielded = [t for op in needed for t in op.outputs if t in used and t not in values]
        kept = [t for t in yielded if t.dtype.kind != _HANDLES]
        for tensor in kept:
            if tensor.dtype.kind == "list":
                raise InvalidArgumentError(
                    f"{tensor.name!r} is a list of tensors, which cannot be kept between the "
                    "pieces of a partial run; fetch what is read of it in the same piece"
                )
        return kept


_NOT_SET_UP = "was not named in partial_run_setup"


def _upstream(
    roots: Iterable[Operation], known: Iterable[Tensor], done: frozenset[Operation]
) -> set[Operation]:
    """Return the operations that must run, where the values of some tensors are known."""
    have = frozenset(known)
    needed: set[Operation] = set()
    waiting = list(roots)
    while waiting:
        op = waiting.pop()
        if op in needed or op in done:
            continue
        needed.add(op)
        waiting.extend(t.op for t in op.inputs if t not in have)
        waiting.extend(
            other
            for other in op.control_inputs
            if other.type != "Placeholder" or other.outputs[0] not in have
        )
    return needed


def _yields_handle(op: Operation) -> bool:
    return any(t.dtype.kind == _HANDLES for t in op.outputs)


class PartialRuns:
    """The partial runs of a session, by the handles that programs have."""

    def __init__(self, graph: Graph, run: RunPiece) -> None:
        self._graph, self._run = graph, run
        self._open: dict[str, PartialRun] = {}
        self._count = 0
        self._lock = threading.Lock()

    def set_up(self, fetches: Any, feeds: Sequence[Any] | None) -> str:
        """Return the handle of a new run."""
        made = PartialRun(self._graph, fetches, feeds or (), self._run)
        with self._lock:
            self._count += 1
            handle = f"partial_run/{self._count}"
            self._open[handle] = made
        return handle

    def run(self, handle: str, fetches: Any, feed_dict: Mapping[Any, Any] | None) -> Any:
        """Run a piece of the run of a handle."""
        found = self._open.get(str(handle))
        if found is None:
            raise InvalidArgumentError(
                f"{shown(handle)} is the handle of no partial run that goes on: call "
                "session.partial_run_setup first, once for each time that all of it runs"
            )
        result = found.run(fetches, feed_dict or {})
        if found.finished:
            with self._lock:
                self._open.pop(handle, None)
        return result
