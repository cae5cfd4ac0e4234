"""Programs: compiled regions, with instances of their own for steps that run at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, NoReturn

import numpy as np

from headrace import Operation, Tensor
from headrace.errors import ResourceExhaustedError
from headrace.extend.devices import LoopForm, ProgramReport, Region, Rounds, located
from headrace_cpu.native.compiler import KernelError
from headrace_cpu.native.threads import Share
from headrace_cpu.program.call_sequence import CallSequence, PartError
from headrace_cpu.program.compilation import Compilation
from headrace_cpu.program.describe import describe
from headrace_cpu.program.environment import HOST_MEMORY, Memory
from headrace_cpu.program.implementation import Implementation
from headrace_cpu.program.instruction import Addresses, Bound, Instruction
from headrace_cpu.program.lifetimes import Places
from headrace_cpu.program.lower import Lowered
from headrace_cpu.program.schedule import Item
from headrace_cpu.program.settings import CompileSettings
from headrace_cpu.program.values import Home, Values

Run = Callable[[Sequence[Any]], list[Any]]
_FILE = "<headrace program>"
# For how many seconds a step that is due for kernels waits for them: to load those of a network
# takes 0.05, to compile one a tenth at least.
_PATIENCE_S = 0.1


class Program:
    """A compiled region.

    Calling it runs it once. Steps that run at the same time each get an instance, with an arena of
    its own; an instance that is free is used again.

    Attributes:
        region: What it computes.
        items: What it does, in order.
        source: The source of the function that does it.
        arena_bytes: The size of an instance's arena.
    """

    _memory: Memory = HOST_MEMORY

    def __init__(
        self,
        region: Region,
        items: Sequence[Item],
        values: Values,
        places: Places,
        lowered: Lowered,
        settings: CompileSettings,
    ) -> None:
        self.region = region
        self.items = tuple(items)
        self.source = lowered.source
        self.arena_bytes = places.layout.size
        self._values = values
        self._places = places
        self._lowered = lowered
        self._code = compile(lowered.source, _FILE, "exec")
        self._wait = settings.wait
        self._lock = threading.Lock()
        self._changed = threading.Event()
        self._free: list[Run] = []
        # The memory of instances that are not used again.
        self._arenas: list[Any] = []
        self._environment = {**self._memory.environment, **lowered.dtypes}
        native = settings.deterministic or any(
            item.instruction is not None or item.op.type == "While" for item in items
        )
        self._compilation = self._to_compile(settings) if native else None
        # How many runs are left before kernels are compiled, None where nothing is left to do.
        after = settings.compile_after
        self._countdown: int | None = None if self._compilation is None else after
        self._counts = False
        # With a fixed number of threads sums are added up in a fixed order.
        self._share = settings.share() if native else None
        # The tensors that are read, found where somebody asks.
        self._read: frozenset[Tensor] | None = None
        # What runs it as the body of a loop, by how the loop hands values on.
        self._loops: dict[LoopForm, Rounds | str] = {}
        # Whether a loop inside was not there when somebody asked for that last.
        self._loops_wait = False
        # Without instructions nothing is kept in an instance, and one serves all.
        self._only = None if native else self._instance()

    def _to_compile(self, settings: CompileSettings) -> Compilation | None:
        """Return what compiles its kernels once it has run often, None where they are there."""
        sequences = [i for i in self._lowered.calls if isinstance(i, CallSequence)]
        return Compilation([*self.instructions, *sequences], settings)

    @property
    def instructions(self) -> list[Instruction]:
        """Its instructions, in order."""
        return [i.instruction for i in self.items if isinstance(i.instruction, Instruction)]

    def describe(self) -> ProgramReport:
        """Return what it does, with sources."""
        made, left = self._compilation, self._countdown
        compiled = "" if made is None else made.describe(left)
        return describe(self.region, self.items, self._values, self._places, self.source, compiled)

    def rounds(self, form: LoopForm) -> Rounds | str:
        """Return what runs it as the body of a loop, many rounds at one go, or why it cannot."""
        found = self._loops.get(form)
        if found is None:
            if self._share is None or self._compilation is None:
                return "the body has no kernels"
            if not self._compilation.done:
                return "the kernels of the body are not compiled yet"
            found = self._loop(form, self._share)
            if not self.waits_for_kernels:
                self._loops[form] = found
        return found

    @property
    def waits_for_kernels(self) -> bool:
        """Whether kernels are not there yet, its own or those of loops inside."""
        compiled = self._compilation is None or self._compilation.done
        return not compiled or self._loops_wait

    def _loop(self, form: LoopForm, share: Share) -> Rounds | str:
        # lazy: few programs are bodies of loops
        from headrace_cpu.loops.body import Later, Unfit
        from headrace_cpu.loops.loop_program import LoopProgram

        given = self.region, self.items, self._values, self._places, form
        self._loops_wait = False
        try:
            return LoopProgram(*given, self._arena, share)
        except (Unfit, KernelError) as reason:
            self._loops_wait = isinstance(reason, Later)
            return str(reason)

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """Run once: return the outputs for values of the inputs."""
        if self._only is None:
            return self._run_instance(values)
        try:
            return self._only(values)
        except Exception as error:
            self._raise(error)

    def _run_instance(self, values: Sequence[Any]) -> list[Any]:
        if self._countdown is not None:
            self._count()
        free, share = self._free, self._share
        assert share is not None
        try:
            run = free.pop()
        except IndexError:
            # Not while kernels are adopted: all of them are bound, or none.
            with self._lock:
                free, run = self._free, self._instance()
        share.enter()
        try:
            return run(values)
        except Exception as error:
            self._raise(error)
        finally:
            share.leave()
            free.append(run)

    def _count(self) -> None:
        left = self._countdown
        if not self._counts:
            self._counts = True
            assert self._compilation is not None
            if left and self._compilation.begins():
                self._countdown = left = 0
        if left is not None and left > 0:
            self._countdown = left - 1
        elif left is not None:
            self._prepare()

    def _prepare(self) -> None:
        """Compile what is interpreted until then, or begin to."""
        compilation = self._compilation
        assert compilation is not None
        with self._lock:
            if self._countdown is None:
                return
            if self._wait:
                compilation.wait()
            self._countdown = None
            if self._wait:
                self._adopt(compilation)
                return
        compilation.start(self.region.background, self._change_over, self._wait_instead)
        # Kernels that the cache has are there in a moment; then this step runs them already.
        self._changed.wait(_PATIENCE_S)

    def _change_over(self) -> None:
        """Run what was compiled behind the steps from the next step on."""
        assert self._compilation is not None
        try:
            with self._lock:
                self._adopt(self._compilation)
        finally:
            self._changed.set()

    def _adopt(self, compilation: Compilation) -> None:
        # Instances that still run were bound before; they are not used again. The memory of the
        # others is: it has its pages already.
        stale, self._free = self._free, []
        self._arenas = [run.__dict__["arena"] for run in stale]
        compilation.adopt()

    def _wait_instead(self) -> None:
        """Compile while a step waits, as there is nothing behind the steps any more."""
        self._wait, self._countdown = True, 0
        self._changed.set()

    # -- instances

    def _arena(self) -> Any:
        if self._arenas:
            return self._arenas.pop()
        try:
            return self._memory.allocate(self.arena_bytes) if self.arena_bytes else None
        except MemoryError:
            op = self.items[-1].op
            raise ResourceExhaustedError(
                f"a step needs {self.arena_bytes} bytes for its values, more memory than there "
                f"is; among its operations is {op.name!r}\n  at {op.site}"
            ) from None

    def _instance(self) -> Run:
        memory = self._arena()
        start = 0 if memory is None else self._memory.address(memory)
        values, lowered = self._values, self._lowered
        bound: dict[str, Any] = {}
        instructions: dict[Implementation, Bound] = {}
        for instruction, name in lowered.calls.items():
            assert isinstance(instruction, Instruction)
            made = instruction.bind(ProgramAddresses(self, instruction, start))
            instructions[instruction] = made
            bound[name] = made.call
            for tensor, point in lowered.points.get(instruction, {}).items():
                bound[point] = made.point[tensor]
        for name, told in lowered.together.items():
            bound[name] = [instructions[one].point[tensor] for one, tensor in told]
        for op, name in lowered.kernels.items():
            bound[name] = self._placed(op, self.region.bind(op))
        recorder = self.region.options.recorder
        for work, name in lowered.notes.items():
            assert recorder is not None
            bound[name] = self._noted(recorder.noter(work))
        for tensor, name in lowered.presets.items():
            bound[name] = self._preset(tensor)
        for tensor, name in lowered.views.items():
            offset = self._places.offset(values.root(tensor))
            shape = tensor.shape.known
            bound[name] = self._memory.view(start + offset, shape, tensor.dtype.numpy, memory)
        scope: dict[str, Any] = {}
        if lowered.flat:
            scope = {**self._environment, **bound}
            exec(self._code, scope)
            # Its globals do not refer to the function: it is free when nobody runs it any more.
            run: Run = scope.pop("run")
        else:
            exec(self._code, self._environment, scope)
            run = scope["make"](*(bound[name] for name in lowered.bound))
        # The instructions know addresses only: the arena lives as long as the function.
        run.__dict__["arena"] = memory
        return run

    def _noted(self, note: Callable[[int], object]) -> Callable[[int], object]:
        """Return what notes that a piece of work has ended which began at a time."""
        return note

    def _preset(self, root: Tensor) -> Any:
        """Return a value that is known before the step."""
        return self._values.presets[root]

    def place_of(self, tensor: Tensor, start: int) -> int | None:
        """Return a tensor's place with an arena at an address, None where each step has another."""
        root = self._values.root(tensor)
        home = self._values.home[root]
        if home is Home.BUFFER:
            return start + self._places.offset(root)
        if home is Home.PRESET:
            return self._memory.address(self._preset(root))
        return None

    def scratch_of(self, instruction: Implementation, start: int) -> int:
        """Return the address of an instruction's scratch memory in such an arena."""
        offset = self._places.scratch_offset(instruction)
        assert offset is not None, "the instruction asked for no scratch memory"
        return start + offset

    def _placed(self, op: Operation, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return what computes an operation here; native loops want to know what is read of it."""
        if op.type == "While" and self._share is not None:
            return self._loop_call(op, self._share, call)
        within = getattr(call, "within", None)
        if within is None:
            return call
        if self._read is None:
            inputs = (t for item in self.items for each in item.ops for t in each.inputs)
            self._read = frozenset((*inputs, *self.region.outputs))
        wanted = [t in self._read for t in op.outputs]
        placed: Callable[..., Any] = within(wanted, shares=self._share is not None)
        return placed

    def _loop_call(
        self, op: Operation, share: Share, call: Callable[..., Any]
    ) -> Callable[..., Any]:
        """Return what runs a loop inside."""
        if self._compilation is None or not self._compilation.done:
            return share.lent(call)
        # lazy: few programs have loops, and the first runs no kernels
        from headrace_cpu.loops.loop_call import LoopCall

        return LoopCall(op, self.region, self.items, self._values, share, call)

    # -- failures

    def _raise(self, error: Exception) -> NoReturn:
        """Raise an error of this step, naming the operation at which the program stopped."""
        named = self._located(error, error.__traceback__)
        if isinstance(error, PartError):
            error = error.cause
        if named is error:
            raise error from error.__cause__
        raise named from error

    def _located(self, error: Exception, traceback: TracebackType | None) -> BaseException:
        """Return an error that names the operation at which the program stopped."""
        frame = None
        line = 0
        # The first that is a program's is this one's: others are those of functions inside.
        while traceback is not None and frame is None:
            if traceback.tb_frame.f_code.co_filename == _FILE:
                frame, line = traceback.tb_frame, traceback.tb_lineno
            traceback = traceback.tb_next
        item = self._lowered.lines[line] if frame is not None else None
        if frame is not None and item is None and isinstance(error, MemoryError):
            # A value that was known before the step is copied for the caller.
            return located(error, self.region.outputs[0].op, [], self.region.uses)
        if frame is None or item is None:
            return error
        if isinstance(error, PartError):
            item, error = error.item, error.cause
        seen = frame.f_locals
        values = [self._value(tensor, seen) for tensor in item.op.inputs]
        return located(error, item.op, values, self.region.uses)

    def _value(self, tensor: Tensor, seen: dict[str, Any]) -> Any:
        """Return what a tensor holds, or, where that is gone, something of its shape."""
        root = self._values.root(tensor)
        if self._values.home.get(root) is Home.PRESET:
            return self._values.presets[root]
        value = seen.get(self._lowered.names.get(root, ""))
        if value is None and tensor.shape.is_fully_defined():
            element = np.zeros((), tensor.dtype.numpy)
            return np.broadcast_to(element, tensor.shape.known)
        return value


class ProgramAddresses(Addresses):
    """Where an instance of a program keeps the buffers of one of its instructions."""

    def __init__(self, program: Program, instruction: Instruction, start: int) -> None:
        """Tell them for an arena that starts at an address."""
        self._program = program
        self._instruction = instruction
        self._start = start

    def of(self, tensor: Tensor) -> int | None:
        """Return the address of a tensor's buffer, None where each step has another."""
        updated = tensor in self._instruction.updates
        return None if updated else self._program.place_of(tensor, self._start)

    def scratch(self) -> int:
        """Return the address of the instruction's scratch memory."""
        return self.scratch_of(self._instruction)

    def part(self, instruction: Instruction) -> Addresses:
        """Return where a part of the instruction has its buffers."""
        return ProgramAddresses(self._program, instruction, self._start)

    def scratch_of(self, implementation: Implementation) -> int:
        """Return the address of the scratch memory of the instruction, or of a part of it."""
        return self._program.scratch_of(implementation, self._start)
