"""Calls of loops: a loop among a program's operations, without an executor around its iterations.

Where nothing is kept and no list is read, a run has nothing to do but say where the arguments are
and where the results go. Everything else runs as ever: the first runs, whose kernels are not there
yet, other shapes, and rounds that fail, which are begun again one by one, where errors are told.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, final

import numpy as np

from headrace import Operation, Tensor
from headrace.extend.devices import Region, current_cancellation, moved
from headrace_cpu.loops.body import Later, Unfit
from headrace_cpu.loops.columns import Misfit, solid
from headrace_cpu.loops.driver import PAUSED
from headrace_cpu.loops.loop_program import FIRST_BEGUN, SLICE_S, loop_within, parts_of, read_in
from headrace_cpu.loops.nested_loops import Binding, LoopWithin, within_place
from headrace_cpu.native.compiler import KernelError
from headrace_cpu.native.memory import Array, address
from headrace_cpu.native.threads import Share
from headrace_cpu.program.instruction import Addresses
from headrace_cpu.program.schedule import Item
from headrace_cpu.program.values import Values

Call = Callable[..., Any]


class _Elsewhere(Addresses):
    """Everything is somewhere else in each run."""

    def of(self, tensor: Tensor) -> int | None:
        return None

    def scratch(self) -> int:
        raise AssertionError("a loop has no scratch memory of its own")


@final
class LoopCall:
    """What runs a loop, for the values of its inputs."""

    def __init__(
        self,
        op: Operation,
        region: Region,
        items: Sequence[Item],
        values: Values,
        share: Share,
        plain: Call,
    ) -> None:
        """Begin with nothing but what runs it in any case.

        Args:
            op: The loop.
            region: The region that it is part of.
            items: What the region's program does.
            values: Where the program's values live.
            share: Takes a share of the threads.
            plain: Runs it round by round, or as its runner does.
        """
        self._found = op, region, items, values
        self._share, self._plain = share, share.lent(plain)
        self._loop: LoopWithin | None = None
        # What runs it that keeps values of rounds, or reads lists.
        self._keeping: Call | None = None
        self._never = False
        self._free: list[_Run] = []
        # How many rounds a slice may begin.
        self.begins = FIRST_BEGUN

    def __call__(self, *values: Any) -> Any:
        """Return the loop's results."""
        if self._never:
            return self._plain(*values)
        keeping = self._keeping
        if keeping is not None:
            found = keeping(*values)
            return self._plain(*values) if found is None else found
        try:
            run = self._free.pop()
        except IndexError:
            made = self._made()
            if made is None:
                return self._plain(*values)
            run = made
        try:
            results = run(values, self)
        except Misfit:
            results = None
        # An interrupt leaves a run in the middle of a round; then it is not used again.
        self._free.append(run)
        return self._plain(*values) if results is None else results

    def _made(self) -> _Run | None:
        try:
            if self._loop is None:
                op, region, items, values = self._found
                self._loop = loop_within(op, region, items, values)
            return _Run(self._loop, self._share)
        except Later:
            return None
        except (Unfit, KernelError):
            self._keep()
            return None

    def _keep(self) -> None:
        """Run it from now on as what keeps values, where it counts; never where it does not."""
        op, region, items, values = self._found
        try:
            self._keeping = self._share.lent(KeepingRuns(op, region, items, values))
        except Later:
            pass
        except (Unfit, KernelError):
            self._never = True


@final
class KeepingRuns:
    """Runs a loop that counts, and keeps values of its rounds or reads and writes lists."""

    def __init__(
        self, op: Operation, region: Region, items: Sequence[Item], values: Values
    ) -> None:
        """Look at the loop; see ``loop_within``.

        Raises:
            Later: if kernels are not there yet.
            Unfit: if it cannot run so.
        """
        self._held, self._rounds, cond = parts_of(op, region)
        if cond is not None:
            raise Unfit(f"how often {op.name!r} runs is not known before")
        assert self._held.count is not None
        known = [values.presets.get(values.root(t)) for t in op.inputs]
        self._count = self._held.count.rounds(known)
        read = read_in(region, items)
        # Counters are worked out where somebody reads them.
        self._counters = {i: s for i, s in self._held.steps.items() if op.outputs[i] in read}

    def __call__(self, *values: Any) -> Sequence[Any] | None:
        """Run it; return its results, None where rounds must run one by one."""
        held, count = self._held, self._count
        if count is None:
            assert held.count is not None
            count = held.count.rounds(values)
        if not count:
            return None
        run = self._rounds.start([values[i] for i in held.arguments], count)
        if run is None:
            return None
        while run.advance():
            reason = current_cancellation().reason
            if reason is not None:
                raise reason
        found = run.results()
        if found is None:
            return None
        carried, kept = found
        results = [None if number is None else carried[number] for number in held.variables]
        for number, step in self._counters.items():
            results[number] = moved(values[number], step, count)
        return [*results, *kept]


@final
class _Run:
    """An instance of a loop: its tables, and the words that each run writes."""

    def __init__(self, loop: LoopWithin, share: Share) -> None:
        self._loop, self._share = loop, share
        self._binding = Binding(loop, _Elsewhere())
        self._drive = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(within_place())
        self._block = self._binding.block
        self._words = address(self._block)
        self._budget: Array = np.zeros(1, np.int64)
        self._left = ctypes.c_int64.from_address(address(self._budget))
        self._binding.pay_from(address(self._budget))
        op = loop.ops[0]
        places: dict[Tensor, list[tuple[Any, int]]] = {}
        for tensor, where, offset in self._binding.words:
            places.setdefault(tensor, []).append((ctypes.c_int64.from_address(where), offset))
        # Of each input that is read: which it is, what it must be, and the words that say where.
        self._given = [
            (i, t.spec.shape.known, t.dtype.numpy, places[t])
            for i, t in enumerate(op.inputs)
            if t in places and t not in op.inputs[:i]
        ]
        self._seen = [0] * len(self._given)
        self._results = [
            (t.spec.shape.known, t.dtype.numpy, places[t]) if t in places else None
            for t in op.outputs
        ]

    def __call__(self, values: Sequence[Any], call: LoopCall) -> list[Any] | None:
        """Run the loop; return its results, None where it must run otherwise.

        Raises:
            Misfit: if the arguments do not fit.
        """
        count = self._loop.rounds(values)
        if count is None:
            return None
        held = []
        for number, (index, shape, dtype, words) in enumerate(self._given):
            array = values[index]
            if (
                type(array) is not np.ndarray
                or array.shape != shape
                or array.dtype != dtype
                or not array.flags.c_contiguous
            ):
                array = solid(array, shape, dtype)
            held.append(array)
            where = address(array)
            if where != self._seen[number]:
                self._seen[number] = where
                for word, offset in words:
                    word.value = where + offset
        results: list[Any] = []
        for result in self._results:
            if result is None:
                results.append(None)
                continue
            shape, dtype, words = result
            array = np.empty(shape, dtype)
            results.append(array)
            where = address(array)
            for word, _ in words:
                word.value = where
        self._binding.make(count)
        return results if self._run(call) else None

    def _run(self, call: LoopCall) -> bool:
        """Run the rounds, on the program's share of the threads; return whether none failed."""
        binding, share = self._binding, self._share
        threads = share.allowed() if share.threads > 1 else 1
        if binding.own and threads != share.threads:
            return False
        binding.allow(threads)
        while True:
            began = perf_counter()
            self._left.value = budget = call.begins
            for each in binding.held:
                each.hold()
            try:
                status = self._drive(self._words)
            finally:
                for each in binding.held:
                    each.let_go()
            if not status:
                return True
            if status != PAUSED:
                binding.reset()
                return False
            seconds = max(perf_counter() - began, 1e-9)
            begun = budget - self._left.value
            call.begins = max(int(begun * SLICE_S / seconds), 1)
            reason = current_cancellation().reason
            if reason is not None:
                binding.reset()
                raise reason
