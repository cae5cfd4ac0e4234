"""Inlining of calls: the body of a function stands in place of its call; views become one.

A gradient needs tensors from inside a call, condition or loop. Its rule adds a second operation
that yields them, too, and says of which operation's run it is another view. Both, and the views
that further gradients add, become one operation here: what they hold runs once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from headrace.errors import GraphError
from headrace.graph.function import Function
from headrace.graph.operation import Operation
from headrace.graph.schema import OPS
from headrace.graph.tensor import Tensor
from headrace.passes.step_graph import Rewriter, StepGraph

_SAVES = ("saves", "then_saves", "else_saves")
# Functions hold calls of functions; deeper than this no step follows them.
_MAX_DEPTH = 200
_MAX_CHAIN = 10_000
# Functions that call others more than once stand for many times their size. What all calls of a
# step stand for goes in their place up to so many operations; beyond, only small functions do.
MOST_INLINED = 10_000
_SMALL = 1_000
# A call that repeats more operations than this would not end while somebody waits.
MOST_CALLED = 1_000_000


def inline_calls(step: StepGraph) -> StepGraph:
    """Return the step with views joined, and calls replaced by what they call.

    Where that would make the step too large, calls of large functions stay: their inside is
    planned once, and run for each call.

    Raises:
        GraphError: if calls are nested without end, or stand for too many operations.
    """
    sizes: dict[Function, int] = {}
    for _ in range(_MAX_DEPTH):
        step = join_views(step)
        calls = [op for op in step.graph.operations if op.type == "Call"]
        total = sum(called_size(op.attrs["function"], sizes) for op in calls)
        if total > MOST_INLINED:
            for op in calls:
                check_repeated(op.attrs["function"], f"  called at {op.site}")
        chosen = {
            op for op in calls if total <= MOST_INLINED or sizes[op.attrs["function"]] <= _SMALL
        }
        if not chosen:
            return step
        step = _inlined(step, chosen)
    raise GraphError(f"functions call each other more than {_MAX_DEPTH} deep")


def called_size(function: Function, sizes: dict[Function, int]) -> int:
    """Return how many operations a call of a function stands for, those of calls in it counted.

    Args:
        function: The function.
        sizes: What is known already; the sizes of all functions that it calls are added.

    Raises:
        GraphError: if it calls itself.
    """
    path = [function]
    while path:
        last = path[-1]
        # All views of one run are one operation in the end.
        own = [op for op in last.operations if not op.attrs.get("run")]
        calls = [op.attrs["function"] for op in own if op.type == "Call"]
        waiting = next((f for f in calls if f not in sizes), None)
        if waiting is not None:
            if len(path) > _MAX_CHAIN:
                raise GraphError(f"functions call each other more than {_MAX_CHAIN} deep")
            path.append(waiting)
            continue
        sizes[last] = len(own) + sum(sizes[f] for f in calls)
        path.pop()
    return sizes[function]


def check_repeated(function: Function, where: str = "", most: int = MOST_CALLED) -> None:
    """Refuse a function whose calls of others multiply without reason.

    Args:
        function: The function.
        where: A last line for the message.
        most: How many operations a call may run besides one run of each that there is.

    Raises:
        GraphError: if it runs more.
    """
    sizes: dict[Function, int] = {}
    size = called_size(function, sizes)
    if size - sum(map(len, sizes)) > most:
        text = (
            f"a call of the function {function.name!r} stands for {size} operations, more than "
            f"{most}: functions that call another one more than once multiply its operations; "
            "write the repetition with hr.while_loop, or call it once and use its result again"
        )
        raise GraphError(f"{text}\n{where}" if where else text)


def join_views(step: StepGraph) -> StepGraph:
    """Make all views of one run one operation."""
    views: dict[str, list[Operation]] = {}
    for op in step.graph.operations:
        if "run" in op.attrs:
            views.setdefault(op.attrs["run"] or op.name, []).append(op)
    if all(len(group) == 1 for group in views.values()):
        return step
    rewriter = Rewriter("join_views")
    joined: dict[str, Operation] = {}
    for op in step.graph.operations:
        run = op.attrs.get("run", "") or op.name
        group = views.get(run, ())
        if "run" not in op.attrs or len(group) == 1:
            rewriter.copy(op)
            continue
        if run not in joined:
            joined[run] = _joint(rewriter, group)
        _stand_for_view(rewriter, op, joined[run])
    return rewriter.finish(step)


def _joint(rewriter: Rewriter, group: Sequence[Operation]) -> Operation:
    first = group[0]
    attrs = dict(first.attrs)
    for key in _SAVES:
        if key in attrs:
            attrs[key] = tuple(dict.fromkeys(name for op in group for name in op.attrs[key]))
    specs, _ = first.schema.output_specs([t.spec for t in first.inputs], first.arity, attrs)
    return rewriter.copy_with(first, attrs=attrs, specs=specs)


def _stand_for_view(rewriter: Rewriter, op: Operation, joint: Operation) -> None:
    rewriter.stand_for_operation(op, joint)
    place = {name: i for i, name in enumerate(_output_names(joint))}
    for name, tensor in zip(_output_names(op), op.outputs, strict=True):
        rewriter.stand_for_tensor(tensor, joint.outputs[place[name]])


def _output_names(op: Operation) -> list[tuple[str, object]]:
    """Return a name for each output: its number, or what it saves."""
    saved = [(key, name) for key in _SAVES for name in op.attrs.get(key, ())]
    return [*(("", i) for i in range(len(op.outputs) - len(saved))), *saved]


def _inlined(step: StepGraph, chosen: Collection[Operation]) -> StepGraph:
    rewriter = Rewriter("inline")
    for op in step.graph.operations:
        if op in chosen:
            _inline(rewriter, op)
        else:
            rewriter.copy(op)
    return rewriter.finish(step)


def _inline(rewriter: Rewriter, call: Operation) -> None:
    function: Function = call.attrs["function"]
    wanted = [*function.results, *map(function.get_tensor_by_name, call.attrs["saves"])]
    tensors: dict[Tensor, Tensor] = dict(
        zip(function.parameters, (rewriter.tensor(t) for t in call.inputs), strict=True)
    )
    operations: dict[Operation, Operation] = {}
    outer = rewriter.controls(call.control_inputs)
    for op in ancestors(wanted):
        if op.type == "Parameter":
            continue
        controls = tuple(operations[c] for c in op.control_inputs if c in operations)
        starts = not controls and not any(t.op in operations for t in op.inputs)
        attrs = dict(op.attrs)
        if attrs.get("run"):
            attrs["run"] = f"{call.name}/{attrs['run']}"
        new = rewriter.graph.add_operation(
            op.schema,
            name=f"{call.name}/{op.name}",
            inputs=[tensors[t] for t in op.inputs],
            arity=op.arity,
            attrs=attrs,
            specs=[t.spec for t in op.outputs],
            # What depends on nothing inside waits for what the call waits for.
            control_inputs=(*controls, *(outer if starts else ())),
            device=call.device_name.merged(op.device_name),
            colocated_with=tuple(operations[c] for c in op.colocated_with if c in operations),
            site=op.site,
            origin=op.origin or f"of {function.name!r}",
            gradient_rule=op.gradient_rule,
        )
        operations[op] = new
        tensors.update(zip(op.outputs, new.outputs, strict=True))
    for old, inner in zip(call.outputs, wanted, strict=True):
        rewriter.stand_for_tensor(old, tensors[inner])
    done = tuple(dict.fromkeys(tensors[t].op for t in wanted))
    rewriter.stand_for_operation(call, done[0] if len(done) == 1 else _gate(rewriter, call, done))


def _gate(rewriter: Rewriter, call: Operation, done: tuple[Operation, ...]) -> Operation:
    """Return an operation that has finished when all of ``done`` have."""
    return rewriter.graph.add_operation(
        OPS["NoOp"],
        name=call.name,
        inputs=[],
        arity=(),
        attrs={},
        specs=[],
        control_inputs=done,
        device=call.device_name,
        site=call.site,
        origin=f"end of {call.attrs['function'].name!r}",
    )


def ancestors(tensors: Iterable[Tensor]) -> list[Operation]:
    """Return all operations on which tensors depend, in the order of their graph."""
    seen: set[Operation] = set()
    stack = [t.op for t in tensors]
    while stack:
        op = stack.pop()
        if op not in seen:
            seen.add(op)
            stack.extend(t.op for t in op.inputs)
            stack.extend(op.control_inputs)
    return sorted(seen, key=lambda op: op.index)
