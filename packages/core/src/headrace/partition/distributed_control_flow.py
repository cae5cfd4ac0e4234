"""Placing a step whose conditions and loops hold operations for several tasks.

A condition of that kind is put inline, as Switch and Merge. A loop of that kind is *spread*: the
task on which it was placed, its home, keeps the loop with its variables, and every other task that
has a part in it gets a loop of the same run without variables, a *follower*. In each round the home
decides and sends the decision to the followers; each task runs its part of the body, and the
parts exchange values as the parts of a step do. A follower starts after what the loop starts
from, and is dead where that is dead.

References:
    Y. Yu et al., Dynamic control flow in large-scale machine learning, EuroSys 2018, section 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from headrace.device_name import DeviceName
from headrace.errors import PlacementError
from headrace.graph.function import Function, functions_within
from headrace.graph.graph import Graph
from headrace.graph.operation import Operation
from headrace.graph.schema import OPS
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.partition.communication_rounds import may_wait, readiness
from headrace.partition.partition import Partitioner
from headrace.passes.inline_branches import inline_branches
from headrace.passes.prune import extract, prune
from headrace.passes.step_graph import Rewriter, StepGraph
from headrace.placement.list_colocation import lists_together
from headrace.placement.place import HOME_PRIORITY, Machine, Placement, place


def place_spread(
    step: StepGraph,
    machine: Machine,
    pinned: Mapping[str, DeviceName],
    state_users: Mapping[str, Sequence[Operation]] | None = None,
    *,
    optimize: bool = True,
    path: str = "",
    lists: DeviceName | None = None,
) -> tuple[StepGraph, Placement]:
    """Place a step; return it with its conditions and loops spread, and all devices.

    Args:
        step: The step.
        machine: The devices; requests without a job mean the task of its client.
        pinned: Devices of handles and parameters, by name.
        state_users: As ``place`` takes them.
        optimize: Whether to simplify the bodies of loops that are spread.
        path: Names the loops within which the step runs.
        lists: Where lists of tensors are, whatever the operations that use them ask for.

    Raises:
        PlacementError: if an operation cannot run where it must.
    """
    step = inline_branches(
        step,
        lambda op: _scattered(op, machine.client, pinned),
        settle=lambda step: lists_together(step, lists),
    )
    if path:
        # Every task is to do the same rounds: nothing may be left that only one of them drops.
        step = prune(step)
    loops = [op for op in step.graph.operations if op.type == "While"]
    spread = {op for op in loops if _scattered(op, machine.client, pinned)}
    placement = place(step, machine, state_users=state_users, pinned=pinned, loose=spread)
    if not spread:
        return step, placement
    rewriter = Rewriter("spread")
    found: Placement = {}
    for op in step.graph.operations:
        if op in spread:
            _Loop(op, placement, machine, path, optimize).put(rewriter, found)
        else:
            found[rewriter.copy(op)] = placement[op]
    return rewriter.finish(step), found


def _scattered(op: Operation, client: DeviceName, pinned: Mapping[str, DeviceName]) -> bool:
    """Whether what an operation holds cannot be planned on one task, on the operation's device."""
    joint = client.task_name.merged(op.device_name) if _placed(op.device_name) else DeviceName()
    for tensor in op.inputs:
        if tensor.dtype.kind != "resource":
            continue
        asked = pinned.get(tensor.op.name, tensor.op.device_name)
        known = joint.intersected(client.task_name.merged(asked) if _placed(asked) else asked)
        if known is None:
            return True
        joint = known
    home = client.task_name if joint.job is None else joint.task_name
    return any(task != home for task in _asked(op, home))


def _is_spread(op: Operation) -> bool:
    """Whether an operation is a loop with parts on several tasks."""
    return op.type == "While" and op.attrs["body"].is_part


def _placed(name: DeviceName) -> bool:
    return name != DeviceName()


def _asked(op: Operation, home: DeviceName) -> Iterator[DeviceName]:
    """Return the tasks for which operations inside the functions of an operation ask."""
    for function in functions_within(op):
        for inner in function.operations:
            name = inner.device_name
            if name.job is not None or name.task is not None:
                yield home.merged(name).task_name


@dataclass
class _Split:
    """A function of a loop, split by task."""

    partitioner: Partitioner
    results: list[Tensor]


class _Loop:
    """A loop on its way to several tasks."""

    def __init__(
        self,
        op: Operation,
        placement: Mapping[Operation, DeviceName],
        machine: Machine,
        path: str,
        optimize: bool,
    ) -> None:
        self.op = op
        self.placement = placement
        self.device = placement[op]
        self.home = self.device.task_name
        preferred = {**machine.priorities, self.device.kind or "": HOME_PRIORITY}
        self.machine = replace(machine, client=self.device, priorities=preferred, costs=None)
        self.path = f"{path}{op.name}/"
        self.optimize = optimize

    def put(self, rewriter: Rewriter, found: Placement) -> None:
        """Add the loop and its followers to a graph, and their devices to ``found``."""
        op = self.op
        count, cond_count, _ = op.arity
        loop_vars, rest = op.inputs[:count], op.inputs[count:]
        of_cond, of_body = rest[:cond_count], rest[cond_count:]
        body = op.attrs["body"]
        cond_split = self._split("cond", (), [*loop_vars, *of_cond])
        body_split = self._split("body", op.attrs["saves"], [*loop_vars, *of_body])
        cond_parts, body_parts = (s.partitioner for s in (cond_split, body_split))
        returned = [body_parts.tensor_on(t, self.home) for t in body_split.results]
        tasks = {**cond_parts.parts, **body_parts.parts}
        followers = sorted((task for task in tasks if task != self.home), key=str)
        going = {
            task: cond_parts.tensor_on(cond_split.results[0], task)
            for task in (self.home, *followers)
        }
        results = len(body.results)
        inputs = [self._given(group) for group in (loop_vars, of_cond, of_body)]
        start = self._start(rewriter, [t for group in inputs for t in group], found)
        loop = rewriter.graph.add_operation(
            op.schema,
            name=op.name,
            inputs=[rewriter.tensor(t) for group in inputs for t in group],
            arity=tuple(map(len, inputs)),
            attrs={
                **op.attrs,
                "cond": self._finished(cond_parts, self.home, [going[self.home]]),
                "body": self._finished(body_parts, self.home, returned[:results]),
                "saves": tuple(t.name for t in returned[results:]),
            },
            specs=[t.spec for t in op.outputs],
            control_inputs=rewriter.controls(op.control_inputs),
            device=self.device,
            site=op.site,
            origin=op.origin,
        )
        found[loop] = self.device
        rewriter.stand_for(op, loop)
        for task in followers:
            follower = rewriter.graph.add_operation(
                op.schema,
                name=f"{op.name}/_follower{task}",
                inputs=[],
                arity=(0, 0, 0),
                attrs={
                    **op.attrs,
                    "cond": self._finished(cond_parts, task, [going[task]]),
                    "body": self._finished(body_parts, task, []),
                    "saves": (),
                    "run": op.attrs["run"] or op.name,
                },
                specs=[],
                control_inputs=(start,),
                device=replace(task, kind="cpu", index=0),
                site=op.site,
                origin=f"part of While {op.name!r}",
            )
            found[follower] = follower.device_name

    def _given(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return the inputs of the loop at home, without handles: the parts find those."""
        return [t for t in tensors if t.dtype.kind != "resource"]

    def _start(self, rewriter: Rewriter, inputs: Sequence[Tensor], found: Placement) -> Operation:
        """Return an operation at home that is dead where an input of the loop is."""
        op = self.op
        arrived = []
        for i, tensor in enumerate(dict.fromkeys(inputs)):
            if tensor.op.type == "Const" and not tensor.op.control_inputs:
                continue
            # Only one of the outputs of a Switch lives, which no control edge from it tells.
            arrived.append(
                rewriter.graph.add_operation(
                    OPS["Identity"],
                    name=f"{op.name}/_arrived_{i}",
                    inputs=[rewriter.tensor(tensor)],
                    arity=(1,),
                    attrs={},
                    specs=[tensor.spec],
                    device=self.device,
                    site=op.site,
                    origin=f"part of While {op.name!r}",
                )
            )
        start = rewriter.graph.add_operation(
            OPS["NoOp"],
            name=f"{op.name}/_start",
            inputs=[],
            arity=(),
            attrs={},
            specs=[],
            control_inputs=(*arrived, *rewriter.controls(op.control_inputs)),
            device=self.device,
            site=op.site,
            origin=f"part of While {op.name!r}",
        )
        found.update(dict.fromkeys([*arrived, start], self.device))
        return start

    def _split(self, label: str, saves: Sequence[str], arguments: Sequence[Tensor]) -> _Split:
        function: Function = self.op.attrs[label]
        wanted = [*function.results, *map(function.get_tensor_by_name, saves)]
        step = self.machine.pipeline.prepared(
            extract((), wanted, function.effects), optimize=self.optimize
        )
        step, pinned = self._with_handles(step, arguments)
        prefix = f"{self.path}{label}/"
        step, placement = place_spread(
            step, self.machine, pinned, optimize=self.optimize, path=prefix, lists=self.device
        )
        ready = readiness(
            step.graph.operations, placement, may_wait(self.machine.kernels, placement)
        )

        def make() -> Graph:
            made = Function(function.name, function.outer, instead_of=function)
            made.name = f"_spread/{prefix.removesuffix('/')}"
            made.is_part = True
            return made

        parts = Partitioner(placement, ready, of=lambda d: d.task_name, make=make, prefix=prefix)
        self._add_parameters(parts, function, step)
        parts.copy_all(step)
        return _Split(parts, list(step.fetches))

    def _with_handles(
        self, step: StepGraph, arguments: Sequence[Tensor]
    ) -> tuple[StepGraph, dict[str, DeviceName]]:
        """Return the step of a function with handles in place of the parameters that take them.

        Also returns the devices of handles and parameters.
        """
        rewriter = Rewriter("spread")
        pinned: dict[str, DeviceName] = {}
        taken = {op.name for op in step.graph.operations}
        handles: dict[Operation, Operation] = {}
        for op in step.graph.operations:
            if op.type != "Parameter" or op.outputs[0].dtype.kind != "resource":
                rewriter.copy(op)
                if op.type == "Parameter":
                    pinned[op.name] = self.device
                continue
            handle = arguments[op.attrs["index"]].op
            if handle.inputs or handle.type == "Parameter":
                raise PlacementError(
                    f"{self.op.name!r} runs on several tasks, and takes the handle that "
                    f"{handle.type} {handle.name!r} passes on; use the variable or queue itself\n"
                    f"  at {self.op.site}"
                )
            if handle not in handles:
                name = handle.name
                while name in taken:
                    name += "_"
                taken.add(name)
                handles[handle] = rewriter.graph.add_operation(
                    handle.schema,
                    name=name,
                    inputs=[],
                    arity=handle.arity,
                    attrs=handle.attrs,
                    specs=[t.spec for t in handle.outputs],
                    device=self.placement[handle],
                    site=handle.site,
                    origin=handle.origin,
                )
                pinned[name] = self.placement[handle]
            rewriter.stand_for(op, handles[handle])
        return rewriter.finish(step), pinned

    def _add_parameters(self, parts: Partitioner, function: Function, step: StepGraph) -> None:
        """Give the part at home the parameters of the function, without those for handles."""
        home = parts.part(self.home)
        made = home.graph
        assert isinstance(made, Function)
        known = {op.attrs["index"]: op for op in step.graph.operations if op.type == "Parameter"}
        for i, parameter in enumerate(function.parameters):
            if parameter.dtype.kind == "resource":
                continue
            spec = parameter.spec
            op = made.add_operation(
                OPS["Parameter"],
                name=parameter.op.name,
                inputs=[],
                arity=(),
                attrs={
                    "index": len(made.parameters),
                    "spec": TensorSpec(spec.dtype, spec.shape, content=spec.content),
                },
                specs=[spec],
                site=parameter.op.site,
            )
            made.parameters.append(op.outputs[0])
            if i in known:
                home.operations[known[i]] = op
                home.tensors[known[i].outputs[0]] = op.outputs[0]

    def _finished(
        self, parts: Partitioner, task: DeviceName, results: Sequence[Tensor]
    ) -> Function:
        made = parts.part(task).graph
        assert isinstance(made, Function)
        made.finish(results)
        # What others wait for: values that are sent, and loops that other tasks take part in.
        made.effects = tuple(op for op in made.operations if op.type == "Send" or _is_spread(op))
        return made
