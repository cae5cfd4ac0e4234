"""Regions: operations of one device that run at one go, compiled for the shapes that come.

A region is compiled once for each combination of shapes of its inputs, in two steps: it is
specialised (every shape follows from those of the inputs) and simplified here, and then handed to
its device. Where shapes inside depend on data, the region is cut there, and what follows is
compiled when it is known what came.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from headrace.errors import HeadraceError, PluginError
from headrace.graph.graph import Graph
from headrace.graph.operation import Operation
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.passes.effects import has_effect
from headrace.passes.pipeline import Pipeline, Stage
from headrace.passes.rewrites import Rewrite
from headrace.passes.specialize import specialize
from headrace.passes.step_graph import StepGraph, verify
from headrace.plugins.ownership import Provider
from headrace.records import dataclass
from headrace.runtime.builtin import ARGUMENTS, RESULTS
from headrace.runtime.concurrency.background import Background
from headrace.runtime.concurrency.cancellation import within_step
from headrace.runtime.devices.capabilities import CompilingDevice, holds_host_arrays
from headrace.runtime.failures import StateUses
from headrace.runtime.garbage_collection import unhindered
from headrace.runtime.options import Options
from headrace.runtime.regions.compilation_history import told
from headrace.runtime.regions.splitting import KernelTimings, MeasuredProgram, bare
from headrace.runtime.transfers.rendezvous import SENT
from headrace.shapes import Shape

if TYPE_CHECKING:
    from headrace.runtime.control_flow.device_loops import HeldLoop
    from headrace.runtime.devices.device import Device
    from headrace.runtime.execution.plan import Plan
    from headrace.runtime.planning.binding import Bound

# Runs a compiled region: takes a value for each input, returns one for each output.
Program = Callable[[Sequence[Any]], list[Any]]
# More combinations of shapes than these are not worth what compiling each of them costs.
MAX_PROGRAMS = 32
# Shapes that depend on data, as those of the rows that each shard of a table looks up, hardly come
# again: a program for each would cost far more than it saves.
MAX_DEPENDENT_PROGRAMS = 4


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """What a device is asked to compile.

    Attributes:
        graph: All operations, in an order in which they can run; ``Feed`` nodes yield the inputs.
        inputs: The tensors that are handed in.
        outputs: The tensors to hand back, which the receiver may keep.
        effects: Operations that must run although nobody reads what they yield.
        handles: What the tensors of resources stand for.
        bind: Returns the plain kernel of an operation, as a function of its inputs' values.
        uses: What the plan does with resources, for messages; complete when a step runs.
        options: How to plan and run.
        reserved: Operations that must run with what ``bind`` returns, and not be compiled: their
            best kernels are of other packages than the device.
        package: Returns who provides what ``bind`` returns, as in ``"headrace-backend-cpu"``.
        background: Does what no step has to wait for.
        rewrites: What the simplifier did.
        early: Indices of outputs that somebody waits for before the region has ended; of a device
            that says nothing of ``lets_go`` there are none. Where there are some, a run gets one
            value more than inputs: a function of such an index and the value, to be called as soon
            as the value is there, if that is before the end. What it returns stands in the value's
            place in the results.
        loop: Returns how an operation runs that is a loop.
        fetched: How many of the outputs, the first ones, go back to the session: they are arrays of
            the host, as inputs may be that the session was fed.
    """

    graph: Graph
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    effects: tuple[Operation, ...]
    handles: Mapping[Tensor, Any]
    bind: Callable[[Operation], Callable[..., Any]]
    uses: StateUses
    options: Options
    reserved: frozenset[Operation]
    package: Callable[[Operation], str]
    background: Background
    rewrites: tuple[Rewrite, ...] = ()
    early: frozenset[int] = frozenset()
    fetched: int = 0
    loop: Callable[[Operation], HeldLoop | None] = lambda op: None


class _Kernels:
    """The kernels of a region's operations.

    What was bound to see who provides it is used by the first instance of the program, so that
    factories do not do their work in vain.
    """

    def __init__(self, around: Surroundings, timings: KernelTimings | None) -> None:
        self._around = around
        self._timings = timings
        self._ahead: dict[Operation, Bound] = {}
        self._providers: dict[Operation, Provider] = {}

    def reserved(self, operations: Sequence[Operation]) -> frozenset[Operation]:
        """Return the operations that their device must not compile."""
        found = set()
        for op in operations:
            bound = self._around.preferred(op)
            if bound is not None:
                self._ahead[op] = bound
                self._providers[op] = bound.provider
                found.add(op)
        return frozenset(found)

    def bind(self, op: Operation) -> Callable[..., Any]:
        """Return what computes an operation."""
        bound = self._ahead.pop(op, None) or self._around.bind(op)
        self._providers[op] = bound.provider
        return bound.call if self._timings is None else self._timings.watched(op, bound.call)

    def package(self, op: Operation) -> str:
        """Return who provides what computes an operation."""
        if op not in self._providers:
            bound = self._ahead[op] = self._around.bind(op)
            self._providers[op] = bound.provider
        return self._providers[op].project


@dataclass(frozen=True, slots=True, eq=False)
class Surroundings:
    """What regions get from the plan that they belong to.

    Attributes:
        bind: Returns the plain kernel of an operation.
        preferred: Returns that kernel where the device must not compile the operation, else None.
        handle: Returns what a handle stands for.
        pipeline: The passes that rewrite regions.
        split: Returns a program for a region in which shapes depend on data: it plans the
            region's graph anew, with the given operations running by themselves.
        uses: What the plan does with resources.
        options: How to plan and run.
        background: Does what no step has to wait for.
        splits: Whether regions are split where operations take long that could run at once.
        inner: Returns the plans of the functions that an operation holds.
    """

    bind: Callable[[Operation], Bound]
    preferred: Callable[[Operation], Bound | None]
    handle: Callable[[Operation], Any]
    pipeline: Pipeline
    split: Callable[[StepGraph, frozenset[Operation]], Program]
    uses: StateUses
    options: Options
    background: Background
    splits: bool = False
    inner: Callable[[Operation], tuple[Plan, ...]] = lambda op: ()


# Takes a value of a step; returns what the region hands over in its place, None for nothing.
Outlet = Callable[[Any, Any], Any]


class RegionCall:
    """A region as a node of a plan.

    Attributes:
        feeds: Indices of the step's feeds that it takes, before other inputs.
        fetches: Indices of the step's fetches that it fills, with its first outputs.
        inputs: The tensors that come from other nodes.
        exports: The tensors that other nodes take.
        outlets: What takes exports as soon as they are there, by their indices among results.
        holds: Whether there are loops inside.
    """

    def __init__(
        self,
        operations: Sequence[Operation],
        needed: Callable[[Tensor], bool],
        device: CompilingDevice,
        around: Surroundings,
        leaves: Callable[[Tensor], bool] = lambda tensor: False,
    ) -> None:
        """Take operations together.

        Args:
            operations: The operations with the constants and handles that they use, in an order in
                which they can run.
            needed: Whether a tensor is read outside.
            device: The device that compiles them.
            around: The plan that they belong to.
            leaves: Whether a tensor that is read outside only goes to other tasks from there.
        """
        self._device = device
        self._around = around
        inside = set(operations)
        # In the order of the step's, so that what runs often takes and hands lists as they are.
        feeds = sorted((op for op in operations if op.type in ARGUMENTS), key=_place)
        fetches = sorted((op for op in operations if op.type in RESULTS), key=_place)
        self.feeds = tuple(op.attrs["index"] for op in feeds)
        self.fetches = tuple(op.attrs["index"] for op in fetches)
        # What a function returns stays on its device.
        self._fetched = sum(op.type == "Fetch" for op in fetches)
        self.inputs = tuple(
            dict.fromkeys(t for op in operations for t in op.inputs if t.op not in inside)
        )
        self.exports = tuple(t for op in operations for t in op.outputs if needed(t))
        self.outlets: dict[int, list[Outlet]] = {
            len(fetches) + i: [] for i, t in enumerate(self.exports) if leaves(t)
        }
        self._given = (*(op.outputs[0] for op in feeds), *self.inputs)
        self._wanted = (*(op.inputs[0] for op in fetches), *self.exports)
        ends = {*feeds, *fetches}
        self.operations = tuple(op for op in operations if op not in ends)
        self._varying = tuple(
            i
            for i, t in enumerate(self._given)
            if t.dtype.kind not in _UNSHAPED and not t.shape.is_fully_defined()
        )
        self.holds = any(op.type == "While" for op in self.operations)
        self._effects = self._find_effects()
        self._programs: dict[tuple[Any, ...], Program] = {}
        self._only: Program | None = None
        self._lock = threading.Lock()
        # For which shapes it was compiled, and how many seconds after it was made.
        self._born = time.monotonic()
        self._history: list[tuple[tuple[Any, ...], float]] = []

    def _find_effects(self) -> frozenset[Operation]:
        """Return the operations that must run whatever becomes of their outputs.

        These are, besides those with effects, the ones that nobody uses: the step asks for them.
        """
        used = {t.op for op in self.operations for t in op.inputs}
        used.update(c for op in self.operations for c in op.control_inputs)
        used.update(t.op for t in self._wanted)
        return frozenset(
            op for op in self.operations if has_effect(op) or not op.outputs or op not in used
        )

    def whole(self, fetches: int) -> Program | None:
        """Return what runs it as a whole plan, from feeds to fetches; None where there is more."""
        if self.inputs or self.exports or list(self.fetches) != list(range(fetches)):
            return None
        feeds = self.feeds
        if all(i == index for i, index in enumerate(feeds)):
            return self.run

        def run(values: Sequence[Any]) -> list[Any]:
            return self.run([values[i] for i in feeds])

        return run

    @property
    def programs(self) -> Mapping[tuple[Any, ...], Program]:
        """The programs compiled so far, by the shapes of the inputs whose shapes vary."""
        return {shapes: bare(program) for shapes, program in self._programs.items()}

    def history(self) -> list[str]:
        """Return when and why it was compiled, and compiled again, where shapes vary."""
        return told(self._history, [_known_as(self._given[i]) for i in self._varying])

    def __call__(self, step: Any, *values: Any) -> Sequence[Any]:
        """Run as a node of a plan."""
        given = [*map(step.feeds.__getitem__, self.feeds), *values]
        outlets = self.outlets
        if outlets:

            def emit(index: int, value: Any) -> Any:
                left = None
                for outlet in outlets[index]:
                    left = outlet(step, value)
                return SENT if left is None else left

            given.append(emit)
        if self.holds:
            results: list[Any] = within_step(step.cancellation, self.run, given)
        else:
            results = self.run(given)
        for index, value in zip(self.fetches, results, strict=False):
            step.fetches[index] = value
        return results[len(self.fetches) :]

    def inner(self, op: Operation) -> tuple[Plan, ...]:
        """Return the plans of the functions that an operation inside holds."""
        return self._around.inner(op)

    def compute(self, *values: Any) -> list[Any]:
        """Run as a node of a plan, where it takes nothing from the step and hands it nothing."""
        program = self._only
        return self.run(values) if program is None else program(values)

    def run(self, values: Sequence[Any]) -> list[Any]:
        """Return the outputs for values of the inputs."""
        program = self._only
        if program is None:
            key = tuple([_shape(values[i]) for i in self._varying])
            program = self._programs.get(key)
            if program is None:
                program = self.program(key)
        return program(values)

    def program(self, shapes: tuple[Any, ...]) -> Program:
        """Return the program for shapes of the inputs whose shapes vary."""
        with self._lock:
            known = self._programs.get(shapes)
            if known is not None:
                return known
            fed = self._fed_shapes_vary(shapes)
            if fed and len(self._programs) == MAX_PROGRAMS:
                self._warn()
            crowded = len(self._programs) >= (MAX_PROGRAMS if fed else MAX_DEPENDENT_PROGRAMS)
            key: tuple[Any, ...] = ("any",) if crowded else shapes
            program = self._programs.get(key)
            if program is None:
                self._history.append((key, time.monotonic() - self._born))
                with unhindered():
                    program = self._programs[key] = self._compile(None if crowded else shapes)
            if not self._varying:
                self._only = program
            return program

    def expected(self, shapes: Sequence[tuple[int, ...] | None]) -> Program | None:
        """Return the program that will run, as far as that is known before a step; for reports.

        Args:
            shapes: Of the values that are handed in, None where one is not known.

        Returns:
            The program for these shapes, compiled if need be; where they do not tell all, the one
            that was compiled last; None if there is none.
        """
        key = tuple([shapes[i] for i in self._varying])
        if None in key:
            program = next(reversed(self._programs.values()), None)
            return None if program is None else bare(program)
        return bare(self.program(key))

    def settled(self, feeds: Sequence[Any]) -> Program | None:
        """Return the program for values of a whole plan's feeds, if it is there to stay.

        Args:
            feeds: All feeds of the plan.

        Returns:
            It; None where none was compiled for these shapes, or where it is still measured.
        """
        program = self._only
        if program is None:
            given = [feeds[i] for i in self.feeds]
            program = self._programs.get(tuple([_shape(given[i]) for i in self._varying]))
        return None if isinstance(program, MeasuredProgram) else program

    def settled_for(self, specs: Sequence[TensorSpec]) -> Program | None:
        """Return the program for feeds of known shapes, if it is there to stay.

        Args:
            specs: What is known of all feeds of the plan.
        """
        program = self._only
        if program is None:
            given = [specs[i] for i in self.feeds]
            shapes = [given[i].shape for i in self._varying]
            if not all(shape.is_fully_defined() for shape in shapes):
                return None
            program = self._programs.get(tuple([tuple(shape.known) for shape in shapes]))
        return None if isinstance(program, MeasuredProgram) else program

    def _fed_shapes_vary(self, shapes: tuple[Any, ...]) -> bool:
        """Whether programs were made for other shapes of what is fed; the user can mend that.

        Shapes that depend on data inside of a step, as those of the rows that each shard of a table
        has to look up, are as they are.
        """
        fed = [n for n, i in enumerate(self._varying) if i < len(self.feeds)]
        others = [key for key in self._programs if len(key) == len(shapes)]
        return any(key[n] != shapes[n] for key in others for n in fed)

    def _warn(self) -> None:
        first = self.operations[0] if self.operations else self._given[0].op
        warnings.warn(
            f"a step has run with {MAX_PROGRAMS} combinations of shapes, each planned by itself; "
            "further ones run without a plan of their own, slower. Pad batches to a few sizes, or "
            f"state shapes that do not vary. The step's first operation is {first.name!r}\n"
            f"  at {first.site}",
            RuntimeWarning,
            stacklevel=2,
        )

    def _compile(self, shapes: tuple[Any, ...] | None) -> Program:
        around = self._around
        specs = [t.spec for t in self._given]
        if shapes is not None:
            for i, shape in zip(self._varying, shapes, strict=True):
                if shape is not None:
                    specs[i] = TensorSpec(specs[i].dtype, Shape(shape), content=specs[i].content)
            try:
                return self._specialized(specs)
            except PluginError:
                raise
            except HeadraceError:
                # The inputs do not fit together: run as it stands, the step names the node.
                pass
        step = specialize(
            self.operations,
            [(t, t.spec) for t in self._given],
            self._wanted,
            lambda op, values: None,
            self._effects.__contains__,
        )
        return self._device.compile(self._region(step, (), around, None))

    def _settle(self, measured: MeasuredProgram, program: Program) -> None:
        """Run a program in place of one that was measured."""
        with self._lock:
            for shapes, known in self._programs.items():
                if known is measured:
                    self._programs[shapes] = program
            if self._only is measured:
                self._only = program

    def _specialized(self, specs: Sequence[TensorSpec]) -> Program:
        around = self._around
        given = list(zip(self._given, specs, strict=True))
        step = specialize(
            self.operations,
            given,
            self._wanted,
            around.pipeline.evaluate,
            self._effects.__contains__,
        )
        rewrites: tuple[Rewrite, ...] = ()
        if around.options.optimize:
            known = step
            step, rewrites = around.pipeline.run(Stage.REGION, step, checked=around.options.verify)
            known.replaced_by(step)
        elif around.options.verify:
            verify(step)
        dependent = _depend_on_data(step)
        if dependent:
            whole, device = around.split(step, dependent), cast("Device", self._device)
            if not self._fetched or holds_host_arrays(device):
                return whole
            return _Handing(whole, device, self._fetched)
        timings = KernelTimings() if around.splits else None
        program = self._device.compile(self._region(step, rewrites, around, timings))
        if timings is None:
            return program
        return MeasuredProgram(program, timings, step, around.split, self._settle)

    def _region(
        self,
        step: StepGraph,
        rewrites: tuple[Rewrite, ...],
        around: Surroundings,
        timings: KernelTimings | None,
    ) -> Region:
        handles = {
            op.outputs[0]: around.handle(op) for op in step.graph.operations if is_handle(op)
        }
        kernels = _Kernels(around, timings)
        return Region(
            step.graph,
            step.feeds,
            step.fetches,
            step.targets,
            handles,
            kernels.bind,
            around.uses,
            around.options,
            kernels.reserved([op for op in step.graph.operations if not is_handle(op)]),
            kernels.package,
            around.background,
            rewrites,
            frozenset(self.outlets),
            self._fetched,
            self._loop,
        )

    def _loop(self, op: Operation) -> HeldLoop | None:
        # lazy: few regions have loops inside
        from headrace.runtime.control_flow.region_loops import held_loop

        return held_loop(op, self._around.inner(op))


class _Handing:
    """A program that runs a plan on a device, and hands the first of its outputs to the host.

    Attributes:
        plan: The plan.
    """

    def __init__(self, program: Any, device: Device, count: int) -> None:
        self.plan = program.plan
        self._program = program
        self._to_host = device.to_host
        self._count = count

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        results: list[Any] = self._program(values)
        results[: self._count] = map(self._to_host, results[: self._count])
        return results


_UNSHAPED = ("resource", "list")


def _place(op: Operation) -> int:
    """Return which of the step's feeds or fetches an operation takes or fills."""
    index: int = op.attrs["index"]
    return index


def _known_as(tensor: Tensor) -> str:
    """Return what a user calls an input."""
    return tensor.op.origin or tensor.name


def is_handle(op: Operation) -> bool:
    """Whether an op only finds a resource, which stays the same for all steps."""
    found = not op.inputs and bool(op.outputs) and op.outputs[0].dtype.kind == "resource"
    return found and op.type not in ARGUMENTS


def _shape(value: Any) -> tuple[int, ...] | None:
    return getattr(value, "shape", None)


def _depend_on_data(step: StepGraph) -> frozenset[Operation]:
    """Return the operations whose outputs have shapes that show only when they have run.

    Where nothing in the step reads such an output, its shape is no matter: of what ``unique``
    yields, the places alone have a known one.
    """
    found = [op for op in step.graph.operations if op.type != "Feed" and _yields_unknown(op)]
    if not found:
        return frozenset()
    read = {t for op in step.graph.operations for t in op.inputs}
    late = [op for op in found if any(_unknown(t) and t in read for t in op.outputs)]
    return frozenset(late)


def _yields_unknown(op: Operation) -> bool:
    return any(map(_unknown, op.outputs)) and not any(map(_unknown, op.inputs))


def _unknown(tensor: Tensor) -> bool:
    return tensor.dtype.kind not in _UNSHAPED and not tensor.spec.shape.is_fully_defined()
