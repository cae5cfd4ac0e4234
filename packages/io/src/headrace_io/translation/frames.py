"""Loops of five primitives, found in a graph: which nodes run in which loop.

TensorFlow's loops are cycles of ``Enter``, ``Merge``, ``Switch``, ``NextIteration`` and ``Exit``,
whose nodes run in a *frame* (Yu et al., Dynamic Control Flow in Large-Scale Machine Learning,
EuroSys 2018).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, final

from headrace.errors import GraphError
from headrace.extend.graphs import CycleError, in_order

ENTER = frozenset(("Enter", "RefEnter"))
EXIT = frozenset(("Exit", "RefExit"))
MERGE = frozenset(("Merge", "RefMerge"))
SWITCH = frozenset(("Switch", "RefSwitch"))
NEXT = frozenset(("NextIteration", "RefNextIteration"))
_MAX_DEPTH = 64

Path = tuple[str, ...]


@final
@dataclass(frozen=True, slots=True)
class Linked:
    """A node of a message, with what it depends on.

    Attributes:
        message: The ``NodeDef``.
        inputs: The node, the name of the output where one is given, and the index, of each input.
        controls: The nodes for which it waits.
    """

    message: Any
    inputs: list[tuple[str, str, int]]
    controls: list[str]

    @property
    def op(self) -> str:
        """The type of its op."""
        found: str = self.message.op
        return found

    @property
    def needed(self) -> list[str]:
        """The names of the nodes on which it depends."""
        return [*(name for name, _, _ in self.inputs), *self.controls]


@final
@dataclass(slots=True)
class Loop:
    """A loop of primitives.

    Attributes:
        path: The frames in which its nodes run, outermost first; the last one is its own.
        condition: The node that says whether to go on.
        merges: The nodes that begin an iteration, one for each loop variable.
        starts: What each loop variable starts from, an ``Enter`` for each.
        nexts: What each is in the next iteration.
        switches: For each loop variable the nodes that choose between going on and leaving.
        enters: All nodes through which tensors come in.
    """

    path: Path
    condition: str = ""
    merges: list[str] = field(default_factory=list)
    starts: list[str] = field(default_factory=list)
    nexts: list[str] = field(default_factory=list)
    switches: dict[str, int] = field(default_factory=dict)
    enters: list[str] = field(default_factory=list)


@final
class Body:
    """Nodes of a graph or of a function, in an order in which they can be built.

    Attributes:
        nodes: The nodes by name.
        order: Their names, each after those on which they depend.
        levels: For each node the frames in which it is built; an ``Enter`` is built outside.
        loops: The loops by their frames.
    """

    def __init__(self, nodes: Mapping[str, Linked], given: Iterable[str] = ()) -> None:
        """Find the loops.

        Raises:
            GraphError: if nodes depend on what is not there or on one another, or a loop is not
                built as TensorFlow builds them.
        """
        self.nodes = dict(nodes)
        self.loops: dict[Path, Loop] = {}
        known = set(given)
        self._before: dict[str, list[str]] = {}
        for name, node in self.nodes.items():
            missing = [n for n in node.needed if n not in self.nodes and n not in known]
            if missing:
                raise GraphError(f"node {name!r} has the unknown input {missing[0]!r}")
            self._before[name] = [
                other
                for other in node.needed
                if other in self.nodes and not self._back(node, other)
            ]
        self._frames = self._found_frames(self._sorted())
        for name, node in self.nodes.items():
            if node.op in EXIT:
                inner = self._frames[node.inputs[0][0]]
                self._before[name] += [n for n in self._enters(inner) if n != name]
        self.order = self._sorted()
        self.levels = {
            name: path[:-1] if self.nodes[name].op in ENTER else path
            for name, path in self._frames.items()
        }
        for name in self.order:
            self._note(name)
        for loop in self.loops.values():
            self._check(loop)

    def needed_for(self, ends: Iterable[str], path: Path) -> list[str]:
        """Return the nodes built in some frames on which others depend, in order."""
        seen: set[str] = set()
        waiting = list(ends)
        depth = len(path)
        while waiting:
            name = waiting.pop()
            if name in seen or name not in self.nodes or self._frames[name][:depth] != path:
                continue
            seen.add(name)
            waiting.extend(self._before[name])
        return [name for name in self.order if name in seen and self.levels[name] == path]

    def _back(self, node: Linked, other: str) -> bool:
        """Whether an input comes from the iteration before."""
        return node.op in MERGE and self.nodes[other].op in NEXT

    def _sorted(self) -> list[str]:
        place = {name: i for i, name in enumerate(self.nodes)}
        try:
            return list(in_order(list(self.nodes), self._before.__getitem__, place.__getitem__))
        except CycleError as error:
            raise GraphError(
                f"nodes depend on one another in a cycle, as {error.item!r} does"
            ) from None

    def _found_frames(self, order: Iterable[str]) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for name in order:
            node = self.nodes[name]
            path: Path = ()
            for other in self._before[name]:
                inner = found[other]
                if inner[: len(path)] == path:
                    path = inner
                elif path[: len(inner)] != inner:
                    raise GraphError(f"node {name!r} takes what is inside of two different loops")
            if node.op in ENTER:
                path = (*path, node.message.attr["frame_name"].s.decode("utf-8", "replace"))
                if len(path) > _MAX_DEPTH:
                    raise GraphError(f"loops are nested more than {_MAX_DEPTH} deep")
            elif node.op in EXIT:
                if not path:
                    raise GraphError(f"{node.op} {name!r} is in no loop")
                path = path[:-1]
            found[name] = path
        return found

    def _enters(self, path: Path) -> list[str]:
        return [
            name
            for name, own in self._frames.items()
            if own == path and self.nodes[name].op in ENTER
        ]

    def _note(self, name: str) -> None:
        node, path = self.nodes[name], self._frames[name]
        if not path:
            return
        loop = self.loops.setdefault(path, Loop(path))
        if node.op in ENTER:
            loop.enters.append(name)
        elif node.op == "LoopCond":
            loop.condition = name
        elif node.op in MERGE:
            sources = [other for other, _, _ in node.inputs]
            following = [other for other in sources if self.nodes[other].op in NEXT]
            if following:
                starts = [other for other in sources if other not in following]
                if len(starts) != 1 or len(following) != 1 or self.nodes[starts[0]].op not in ENTER:
                    raise GraphError(f"{node.op} {name!r} does not begin a loop as TensorFlow's do")
                loop.merges.append(name)
                loop.starts.append(starts[0])
                loop.nexts.append(following[0])
        elif node.op in SWITCH and self.nodes[node.inputs[1][0]].op == "LoopCond":
            source = node.inputs[0][0]
            if source not in loop.merges:
                raise GraphError(f"{node.op} {name!r} does not choose between turns of a loop")
            loop.switches[name] = loop.merges.index(source)

    def _check(self, loop: Loop) -> None:
        if loop.merges and not loop.condition:
            raise GraphError(f"the loop {loop.path[-1]!r} has no LoopCond")
