"""Gather and reduce as one instruction: rows of a table are folded and never stored in between.

Sums of messages over the edges of a graph, of the embeddings of the words of a text, and the
gradients of both pick a row for each edge or word, and fold it into that of a node or a text. By
themselves these are two passes, with an array of all picked rows between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

from headrace import Operation, Tensor
from headrace.extend.devices import located
from headrace_cpu.fusion.interpret import interpret
from headrace_cpu.native.memory import Array, view
from headrace_cpu.native.source import KernelSource
from headrace_cpu.native.threads import open_mp
from headrace_cpu.native_loops.native_loop import STATUS, TEAM, code_of, team_for
from headrace_cpu.native_loops.segment_reductions import (
    FOLD_WORDS,
    SEGMENTS,
    Folds,
    fold_native_loop,
    lists_for,
)
from headrace_cpu.program.block import Block, bound
from headrace_cpu.program.instruction import ALIGNMENT, Addresses, Bound, Instruction
from headrace_cpu.program.matching import Candidate
from headrace_cpu.program.values import is_native

FOLDS = frozenset(SEGMENTS)


class PickedFold(Instruction):
    """Picks rows of a table, multiplies each by a number where there is one, and folds them."""

    name = "fold_picked"

    def __init__(
        self, gather: Operation, weighing: tuple[Operation, Tensor] | None, fold: Operation,
        folds: Folds, threads: int,
    ) -> None:  # fmt: skip
        """Describe it.

        Args:
            gather: What picks rows.
            weighing: What multiplies them, and by what; None where nothing does.
            fold: What folds them.
            folds: The fold, as native loops know it.
            threads: How many threads it may use.
        """
        self._gather, self._weights = gather, None if weighing is None else weighing[1]
        self.ops = (gather, fold) if weighing is None else (gather, weighing[0], fold)
        self._table, self._picks = gather.inputs[:2]
        self._ids, result = fold.inputs[1], fold.outputs[0]
        weights = () if self._weights is None else (self._weights,)
        self.reads = tuple(dict.fromkeys((self._table, self._picks, self._ids, *weights)))
        self.writes = (result,)
        self._count, self._rows = prod(self._ids.shape.known), result.shape.known[0]
        self._width = prod(result.shape.known[1:])
        self._none = folds.none
        work = self._count * (self._width + 1) + self._rows * self._width // 8
        self._threads = team_for(work, threads if open_mp() is not None else 1)
        self._line, facts, lists = lists_for(self._width * folds.size, self._threads)
        self._lists = facts
        self._seen = -(-(facts + lists) // ALIGNMENT) * ALIGNMENT
        self.scratch = self._seen + (0 if folds.none is None else self._rows)
        codes = [code_of(t.dtype.numpy) or "" for t in (self._ids, self._picks)]
        weighted = self._weights is not None
        self._native_loop = fold_native_loop(
            folds.fold, folds.code, codes[0], codes[1], 1, weighted
        )
        self._kernel: int | None = None

    def flops(self) -> int:
        """Return how many floating-point operations it does."""
        if not self.writes[0].dtype.is_floating:
            return 0
        return self._count * self._width * (1 if self._weights is None else 2)

    def source(self) -> str:
        """Return the source of its kernel."""
        return self._native_loop.source().text

    def kernels(self) -> Sequence[KernelSource]:
        """Return its kernel; plain kernels compute until it is there."""
        return [self._native_loop.source()] if self._kernel is None else []

    def adopt(self, addresses: Sequence[int]) -> None:
        """Run the kernel."""
        for each in addresses:
            self._kernel = each

    def bind(self, at: Addresses) -> Bound:
        """Return what runs it on buffers at ``at``."""
        words = (*TEAM, *FOLD_WORDS)
        place = {word: i for i, word in enumerate(words)}
        # Behind the kernel's words are those that only the plain kernels want.
        tensors = (*self.reads, *self.writes)
        block = Block(len(words) + len(tensors), at)
        for i, tensor in enumerate(tensors, len(words)):
            block.bind(tensor, i)
        arrays = partial(self._arrays, block.words, len(words))
        if self._kernel is None:
            return bound(block.kept(partial(self._plain, arrays)), [block], tensors, at)
        if self._threads > 1:
            block.bind_team(*map(TEAM.index, ("number_of", "count_of", "barrier")))
        numbers = {
            "rows": self._rows, "width": self._width, "count": self._count, "drops": 1, "fresh": 1,
            "height": self._table.shape.known[0], "line": self._line,
        }  # fmt: skip
        for name, number in numbers.items():
            block.words[place[name]] = number
        named: dict[str, Tensor | None] = {
            "out": self.writes[0], "ids": self._ids, "through": self._picks, "data": self._table,
            "weights": self._weights,
        }  # fmt: skip
        for name, each in named.items():
            if each is not None:
                block.bind(each, place[name])
        block.bind_scratch(place["facts"])
        block.bind_scratch(place["lists"], self._lists)
        if self._none is not None:
            block.bind_scratch(place["seen"], self._seen)
            block.words[place["none"]] = self._none.__array_interface__["data"][0]
        launched = block.launch(self._kernel, self._threads)
        call = block.kept(partial(self._run, block.words, launched, arrays))
        return bound(call, [block], tensors, at)

    def _arrays(self, words: Array, first: int) -> dict[Tensor, Array]:
        """Return arrays over the buffers of all tensors, whose words begin at one."""
        tensors = (*self.reads, *self.writes)
        places = words[first : first + len(tensors)].tolist()
        return {
            tensor: view(place, tensor.shape.known, tensor.dtype.numpy, self)
            for tensor, place in zip(tensors, places, strict=True)
        }

    def _run(
        self, words: Array, launched: Callable[[], object], arrays: Callable[[], dict[Tensor, Any]]
    ) -> None:
        words[STATUS] = 0
        launched()
        if words.item(STATUS):
            # The plain kernels say what is wrong.
            self._plain(arrays)

    def _plain(self, arrays: Callable[[], dict[Tensor, Any]]) -> None:
        """Let the plain kernels compute it, or refuse what is wrong."""
        found = arrays()
        try:
            interpret(self.ops, found.__getitem__, found, self.writes)
        except Exception as error:
            table, picks = found[self._table], found[self._picks]
            if bool(((picks < 0) | (picks >= table.shape[0])).any()):
                raise located(error, self._gather, [table, picks]) from error
            raise


def wants(candidate: Candidate) -> bool:
    """Whether an operation folds what another one picks, and nobody else wants that."""
    op = candidate.op
    return op.type in FOLDS and not op.control_inputs and _picking(candidate) is not None


def make(candidate: Candidate) -> Instruction | None:
    """Return the instruction that picks and folds; None where no native loop knows the dtypes."""
    op, matches = candidate.op, candidate.matches
    found, folds = _picking(candidate), SEGMENTS[op.type](op)
    if found is None or folds is None or not folds.same or op.inputs[2].spec.value is None:
        return None
    gather, weighing = found
    ops = [gather, op] if weighing is None else [gather, weighing[0], op]
    tensors = [t for each in ops for t in (*each.inputs, *each.outputs)]
    if not all(is_native(t) for t in tensors) or not matches.can_join(ops):
        return None
    table, picks = gather.inputs[:2]
    ids, result = op.inputs[1], op.outputs[0]
    sizes = [prod(t.shape.known) for t in (table, picks, result)]
    if not all(sizes) or sizes[2] > folds.most or ids.shape.known != picks.shape.known:
        return None
    if any(code_of(t.dtype.numpy) is None for t in (ids, picks)):
        return None
    return PickedFold(gather, weighing, op, folds, candidate.settings.threads)


def _picking(candidate: Candidate) -> tuple[Operation, tuple[Operation, Tensor] | None] | None:
    """Return what picks the rows that an operation folds, and what multiplies them, if anything."""
    picked, weighing = candidate.op.inputs[0], None
    if picked.op.type == "Mul" and _alone(candidate, picked):
        for rows, weights in (picked.op.inputs, reversed(picked.op.inputs)):
            if rows.op.type == "Gather" and _weighs(weights, rows, picked):
                weighing, picked = (picked.op, weights), rows
                break
    gather = picked.op
    if gather.type != "Gather" or gather.attrs["axis"] or gather.attrs["batch_dims"]:
        return None
    return (gather, weighing) if _alone(candidate, picked) else None


def _alone(candidate: Candidate, tensor: Tensor) -> bool:
    """Whether one operation reads a tensor, and nobody waits for what makes it."""
    matches, op = candidate.matches, tensor.op
    free = matches.free(op) and not op.control_inputs
    return free and len(matches.users(tensor)) == 1 and tensor not in matches.results


def _weighs(weights: Tensor, rows: Tensor, made: Tensor) -> bool:
    """Whether there is one weight for each row, or each picked element where rows have no axes."""
    if weights is rows or not all(map(is_native, (weights, rows, made))):
        return False
    lead = rows.op.inputs[1].shape
    if not lead.is_fully_defined() or not lead.known or made.shape.known != rows.shape.known:
        return False
    # What broadcasts along the axes of a row, and along no other.
    rest = len(rows.shape.known) - len(lead.known)
    return weights.shape.known == (*lead.known, *(1,) * rest)
