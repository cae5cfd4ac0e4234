"""What a tape recorded: spans of graphs, what was watched when, and what follows from both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace import Graph, GraphKeys, Operation, Tensor, Variable, get_default_graph
from headrace.extend.graphs import Function, inside
from headrace_autodiff.accumulate import Grad
from headrace_autodiff.backward import differentiate
from headrace_autodiff.reverse_mode import gradients


@dataclass(slots=True)
class _Span:
    """Operations of a graph that were built while a tape recorded."""

    graph: Graph
    start: int
    end: int | None = None

    def holds(self, index: int) -> bool:
        return self.start <= index and (self.end is None or index < self.end)


@dataclass(slots=True)
class _Followed:
    """What follows from what was watched: tensors, and the operations that made them of others."""

    tensors: set[Tensor] = field(default_factory=set)
    operations: set[Operation] = field(default_factory=set)
    variables: dict[Variable, None] = field(default_factory=dict)


class Record:
    """What a tape recorded."""

    def __init__(self, automatic: bool) -> None:
        """Start with nothing.

        Args:
            automatic: Whether trainable variables are watched from their first use on.
        """
        self._automatic = automatic
        self._spans: list[_Span] = []
        # The graph and its version when each was watched.
        self._watched: list[tuple[Graph, int, Tensor | Variable]] = []

    def start(self, graph: Graph) -> None:
        """Record what is built in a graph from now on."""
        self._spans.append(_Span(graph, graph.version))

    def stop(self) -> None:
        """Record no more."""
        span = self._spans[-1]
        span.end = span.graph.version

    def watch(self, value: Tensor | Variable) -> None:
        """Follow a tensor or variable from now on."""
        graph = self._spans[-1].graph
        self._watched.append((graph, graph.version, value))

    def variables(self) -> tuple[Variable, ...]:
        """Return the variables that are watched, in the order in which they were made."""
        graphs = dict.fromkeys(span.graph for span in self._spans)
        found = [v for graph in graphs for v in self._followed(graph).variables]
        return tuple(sorted(dict.fromkeys(found), key=lambda v: v.graph.variables.index(v)))

    def gradients(
        self, targets: Sequence[Any], sources: Sequence[Any], arriving: Sequence[Any]
    ) -> list[Grad]:
        """Return the gradient of targets with respect to each source, None where there is none."""
        ys = [_read(t) for t in targets]
        live, known, stop = self._between(ys, targets, sources)
        found: list[Grad] = []
        if live and any(known):
            found = gradients(
                [ys[i] for i in live],
                [x for x, is_known in zip(sources, known, strict=True) if is_known],
                [arriving[i] for i in live],
                stop_gradients=list(stop),
            )
        rest = iter(found)
        return [next(rest) if is_known and found else None for is_known in known]

    def connected(self, y: Tensor, sources: Sequence[Any]) -> list[bool]:
        """Return for each source whether a tensor depends on it differentiably."""
        probe = Function("tape", get_default_graph())
        with inside(probe):
            seed = probe.add_parameter(y.spec)
            found = self.inside(y, sources, seed)
        return [grad is not None for grad, _ in found]

    def inside(self, y: Tensor, sources: Sequence[Any], arriving: Tensor) -> list[tuple[Grad, Any]]:
        """Return gradients and their sources; built in the default graph, which may be a loop's."""
        live, known, stop = self._between([y], [y], sources)
        wanted = [x for x, is_known in zip(sources, known, strict=True) if is_known and live]
        handles = [_handle(x) for x in wanted]
        found = iter(differentiate([y], handles, [arriving], stop) if handles else ())
        return [
            (next(found) if is_known and live else None, x)
            for x, is_known in zip(sources, known, strict=True)
        ]

    def _between(
        self, ys: Sequence[Tensor], targets: Sequence[Any], sources: Sequence[Any]
    ) -> tuple[list[int], list[bool], set[Tensor]]:
        """Return which targets and sources are followed, and the tensors that are constant."""
        graph = ys[0].graph
        if all(span.graph is not graph for span in self._spans):
            # The inside of a function that was built while the tape recorded.
            return list(range(len(ys))), [True] * len(sources), set()
        followed = self._followed(graph)
        for y, given in zip(ys, targets, strict=True):
            if isinstance(given, Variable) and given.handle in followed.tensors:
                followed.tensors.add(y)
                followed.operations.add(y.op)
        same = [any(x is t for t in targets) for x in sources]
        known = [
            itself or any(t in followed.tensors for t in _standing(x, graph))
            for x, itself in zip(sources, same, strict=True)
        ]
        live = [
            i
            for i, (y, given) in enumerate(zip(ys, targets, strict=True))
            if y in followed.tensors or any(given is x for x in sources)
        ]
        return live, known, _constant([ys[i] for i in live], followed)

    def _followed(self, graph: Graph) -> _Followed:
        """Return what follows from what was watched, as far as it was recorded."""
        found = _Followed()
        pending = [(at, value) for g, at, value in self._watched if g is graph]
        pending += [(0, value) for g, _, value in self._watched if g is not graph]
        pending.sort(key=lambda each: each[0])
        spans = [span for span in self._spans if span.graph is graph]
        trained = _trained(graph) if self._automatic else {}
        for index, op in enumerate(graph.operations):
            while pending and pending[0][0] <= index:
                self._watch(found, pending.pop(0)[1], graph)
            if not any(span.holds(index) for span in spans):
                continue
            for t in op.inputs:
                if t in trained and t not in found.tensors:
                    self._watch(found, trained[t], graph)
            if any(t in found.tensors for t in op.inputs):
                found.operations.add(op)
                found.tensors.update(op.outputs)
        for _, value in pending:
            self._watch(found, value, graph)
        return found

    @staticmethod
    def _watch(found: _Followed, value: Tensor | Variable, graph: Graph) -> None:
        if isinstance(value, Variable):
            found.variables[value] = None
        found.tensors.update(_standing(value, graph))


def _read(target: Any) -> Tensor:
    found: Tensor = target.value() if isinstance(target, Variable) else target
    return found


def _handle(source: Any) -> Tensor:
    found: Tensor = source.handle if isinstance(source, Variable) else source
    return found


def _standing(source: Any, graph: Graph) -> list[Tensor]:
    """Return the tensors that stand for a source, in its own graph and in another one."""
    tensor = _handle(source)
    if not isinstance(graph, Function) or tensor.graph is graph:
        return [tensor]
    inner = graph.stand_in(tensor)
    return [tensor] if inner is None else [tensor, inner]


def _trained(graph: Graph) -> dict[Tensor, Variable]:
    """Return the trainable variables by the tensors that stand for them in a graph."""
    listed = graph.outermost.get_collection(GraphKeys.TRAINABLE_VARIABLES)
    variables = [v for v in listed if isinstance(v, Variable)]
    return {t: v for v in variables for t in _standing(v, graph)}


def _constant(ys: Iterable[Tensor], followed: _Followed) -> set[Tensor]:
    """Return the tensors where the way back from the ys leaves what was recorded."""
    found: set[Tensor] = set()
    seen: set[Operation] = set()
    waiting = list(ys)
    while waiting:
        tensor = waiting.pop()
        if tensor not in followed.tensors or tensor.op not in followed.operations:
            found.add(tensor)
        elif tensor.op not in seen:
            seen.add(tensor.op)
            waiting.extend(tensor.op.inputs)
    return found
