"""Inlining of conditions, as Switch and Merge, where their branches need several devices.

An ``If`` is one operation on one device, and its functions are planned there. That cannot be where
a branch asks for another task, or where the state that it uses lives on several devices. Then the
branches become part of the graph around: what they take comes through Switch, so that the side
that is not taken is dead, on whatever task it is, and what they return leaves through Merge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from headrace.device_name import DeviceName
from headrace.dtypes import bool_, int32
from headrace.errors import GraphError, PlacementError
from headrace.graph.function import Function
from headrace.graph.operation import Operation
from headrace.graph.schema import OPS
from headrace.graph.spec import TensorSpec, constant_spec, list_spec
from headrace.graph.tensor import Tensor
from headrace.passes.inline_calls import ancestors, inline_calls
from headrace.passes.step_graph import Rewriter, StepGraph
from headrace.shapes import SCALAR

_MAX_DEPTH = 200
_NOWHERE = DeviceName()


def inline_branches(
    step: StepGraph,
    chosen: Callable[[Operation], bool],
    settle: Callable[[StepGraph], StepGraph],
) -> StepGraph:
    """Return the step with some of its conditions as Switch and Merge.

    Args:
        step: The step; calls in it are put inline already.
        chosen: Whether to put a condition inline; asked again about those that come out of others.
        settle: What to do with the step each time before that is asked.

    Raises:
        GraphError: if conditions are nested without end.
        PlacementError: if a branch returns a handle.
    """
    for _ in range(_MAX_DEPTH):
        step = settle(step)
        found = {op for op in step.graph.operations if op.type == "If" and chosen(op)}
        if not found:
            return step
        rewriter = Rewriter("branches")
        for op in step.graph.operations:
            if op in found:
                _Inlined(rewriter, op).put()
            else:
                rewriter.copy(op)
        step = inline_calls(rewriter.finish(step))
    raise GraphError(f"conditions are nested more than {_MAX_DEPTH} deep")


class _Inlined:
    """One condition on its way into the graph around it."""

    def __init__(self, rewriter: Rewriter, op: Operation) -> None:
        self.rewriter = rewriter
        self.op = op

    def put(self) -> None:
        op = self.op
        flag = TensorSpec(bool_, SCALAR)
        given = self.rewriter.tensor(op.inputs[0])
        controls = self.rewriter.controls(op.control_inputs)
        self.pred = self._add("Identity", "pred", [given], [flag], controls).outputs[0]
        sides = self._add("Switch", "switch", [self.pred, self.pred], [flag, flag]).outputs
        # What depends on nothing but its branch waits for its pivot, and is dead with it.
        self.pivots = [
            self._add("Identity", f"{label}/pivot", [tensor], [flag]).outputs[0]
            for label, tensor in zip(("else", "then"), sides, strict=True)
        ]
        _, then_count, _ = op.arity
        inputs = op.inputs[1:]
        on_true = self._branch(1, inputs[:then_count], op.attrs["then_saves"])
        on_false = self._branch(0, inputs[then_count:], op.attrs["else_saves"])
        count = len(op.attrs["then_branch"].results)
        merges = [
            self._merge(str(i), old, left, right)
            for i, (old, left, right) in enumerate(
                zip(op.outputs[:count], on_false[:count], on_true[:count], strict=True)
            )
        ]
        lists = op.outputs[count:]
        for i, (old, value) in enumerate(zip(lists, on_true[count:], strict=False)):
            merges.append(self._saved(f"then/saved_{i}", old, value, side=1))
        rest = lists[len(on_true) - count :]
        for i, (old, value) in enumerate(zip(rest, on_false[count:], strict=True)):
            merges.append(self._saved(f"else/saved_{i}", old, value, side=0))
        if not merges:
            end = self._add("Merge", "end", self.pivots, [flag, TensorSpec(int32, SCALAR)])
        elif len(merges) == 1:
            end = merges[0]
        else:
            end = self._add("NoOp", "end", [], [], tuple(merges))
        self.rewriter.stand_for_operation(op, end)

    def _add(
        self,
        type_name: str,
        label: str,
        inputs: Sequence[Tensor],
        specs: Sequence[TensorSpec],
        controls: tuple[Operation, ...] = (),
        attrs: dict[str, object] | None = None,
    ) -> Operation:
        # None of these asks for a device: they go where what they pass on is.
        variadic = type_name == "Merge"
        return self.rewriter.graph.add_operation(
            OPS[type_name],
            name=f"{self.op.name}/{label}",
            inputs=inputs,
            arity=(len(inputs),) if variadic else (1,) * len(inputs),
            attrs=attrs or {},
            specs=specs,
            control_inputs=controls,
            site=self.op.site,
            origin=f"of If {self.op.name!r}",
        )

    def _branch(self, side: int, inputs: Sequence[Tensor], saves: Sequence[str]) -> list[Tensor]:
        """Put a branch inline; return what it returns, and what is saved of it."""
        label = ("else", "then")[side]
        function: Function = self.op.attrs[f"{label}_branch"]
        wanted = [*function.results, *map(function.get_tensor_by_name, saves)]
        for tensor in function.results:
            if tensor.dtype.kind == "resource":
                raise PlacementError(
                    f"the condition {self.op.name!r} returns a handle, and its branches need "
                    f"several devices; return what the handle stands for\n  at {self.op.site}"
                )
        sources = dict(zip((t.op for t in function.parameters), inputs, strict=True))
        tensors: dict[Tensor, Tensor] = {}
        operations: dict[Operation, Operation] = {}
        for op in ancestors(wanted):
            if op.type == "Parameter":
                tensors[op.outputs[0]] = self._argument(f"{label}/{op.name}", sources[op], side)
                continue
            controls = tuple(operations[c] for c in op.control_inputs if c in operations)
            alive = any(t.dtype.kind != "resource" for t in op.inputs) or controls
            if not alive and not any(t.dtype.kind == "resource" for t in op.outputs):
                controls = (self.pivots[side].op,)
            new = self._copied(op, label, [tensors[t] for t in op.inputs], controls, operations)
            operations[op] = new
            tensors.update(zip(op.outputs, new.outputs, strict=True))
        return [tensors[t] for t in wanted]

    def _argument(self, label: str, source: Tensor, side: int) -> Tensor:
        value = self.rewriter.tensor(source)
        if value.dtype.kind == "resource":
            return value
        switch = self._add("Switch", label, [value, self.pred], [value.spec, value.spec])
        return switch.outputs[side]

    def _copied(
        self,
        op: Operation,
        label: str,
        inputs: Sequence[Tensor],
        controls: tuple[Operation, ...],
        operations: dict[Operation, Operation],
    ) -> Operation:
        attrs = dict(op.attrs)
        if attrs.get("run"):
            attrs["run"] = f"{self.op.name}/{label}/{attrs['run']}"
        # State and lists are where they are, whatever the condition asks for.
        tied = any(t.dtype.kind in ("resource", "list") for t in (*op.inputs, *op.outputs))
        outer = _NOWHERE if tied else self.op.device_name
        return self.rewriter.graph.add_operation(
            op.schema,
            name=f"{self.op.name}/{label}/{op.name}",
            inputs=inputs,
            arity=op.arity,
            attrs=attrs,
            specs=[t.spec for t in op.outputs],
            control_inputs=controls,
            device=outer.merged(op.device_name),
            colocated_with=tuple(operations[c] for c in op.colocated_with if c in operations),
            site=op.site,
            origin=op.origin or f"of {self.op.attrs[f'{label}_branch'].name!r}",
            gradient_rule=op.gradient_rule,
        )

    def _merge(self, label: str, old: Tensor, left: Tensor, right: Tensor) -> Operation:
        specs = [old.spec, TensorSpec(int32, SCALAR)]
        merge = self._add("Merge", f"merge_{label}", [left, right], specs)
        self.rewriter.stand_for_tensor(old, merge.outputs[0])
        return merge

    def _saved(self, label: str, old: Tensor, value: Tensor, side: int) -> Operation:
        """Return what yields a list of ``value`` where its side is taken, and an empty one else."""
        item = TensorSpec(value.dtype, value.spec.shape, content=value.spec.content)
        nothing = np.zeros((), np.int32)
        nothing.flags.writeable = False
        spec = constant_spec(nothing, int32)
        size = self._add("Const", f"{label}/size", [], [spec], attrs={"value": nothing}).outputs[0]
        empty = [
            self._add(
                "TensorListReserve",
                f"{label}/empty_{i}",
                [size],
                [list_spec(item)],
                (pivot.op,),
                {"spec": item},
            ).outputs[0]
            for i, pivot in enumerate(self.pivots)
        ]
        pushed = self._add("TensorListPush", label, [empty[side], value], [list_spec(item)])
        sides = [empty[0], pushed.outputs[0]] if side else [pushed.outputs[0], empty[1]]
        return self._merge(label.replace("/", "_"), old, *sides)
