"""Differentiating the inside of functions that operations hold.

The gradient of a function is a function: it takes the gradients that arrive at the results, and
whatever tensors of the inside the rules need, and returns the gradients of the parameters. It is
built like any gradient, except that its nodes do not extend the graph that they differentiate:
each tensor of the inside that they use becomes an argument. Where such a tensor is computed by the
forward run, a second *view* of the operation yields it (see ``headrace.passes.inline_calls``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from headrace import (
    Graph,
    IndexedSlices,
    Operation,
    Tensor,
    colocate_with,
    control_dependencies,
    convert_to_tensor,
    device,
    get_default_graph,
    name_scope,
)
from headrace.errors import GraphError
from headrace.extend.graphs import Function, inside, use_graph
from headrace.extend.ops import TensorSpec, build_node
from headrace_autodiff.accumulate import Grad
from headrace_autodiff.lookup import stops
from headrace_autodiff.walk import Walk, value_spec


class _Backward(Function):
    """The gradient of a function while it is built: it takes tensors of the inside as they are."""

    def __init__(self, name: str, outer: Graph, forward: Function) -> None:
        super().__init__(name, outer)
        self.forward = forward

    def of_outer(self, tensor: Tensor) -> Tensor:
        own = self.forward.own(tensor)
        return super().of_outer(tensor) if own is None else own


@dataclass(frozen=True, slots=True)
class Rows:
    """Where a row-sparse gradient stands among the results of a backward function.

    Attributes:
        values: Which result holds its rows.
        indices: Which one says where they belong.
    """

    values: int
    indices: int


@dataclass(frozen=True, slots=True)
class Backward:
    """The gradient of a function.

    Attributes:
        function: Takes the arriving gradients, then what ``wanted`` says.
        found: For each x where its gradient stands among the results; None if there is none.
        wanted: Tensors of the inside, and of graphs around it, that are further arguments.
    """

    function: Function
    found: tuple[int | Rows | None, ...]
    wanted: tuple[Tensor, ...]


def differentiate(
    ys: Sequence[Tensor],
    xs: Sequence[Tensor],
    arriving: Sequence[Tensor],
    stop: Iterable[Tensor] = (),
) -> list[Grad]:
    """Return the gradients of tensors of one graph, built in the default graph.

    Args:
        ys: What to differentiate.
        xs: With respect to what.
        arriving: For each of ``ys`` its gradient.
        stop: Tensors to be taken as constant.
    """

    @contextmanager
    def scopes(op: Operation) -> Iterator[None]:
        with name_scope(f"{op.name}_grad"), device(op.device_name):
            yield

    walk = Walk(ys, xs, stop, scopes)
    for y, grad in zip(ys, arriving, strict=True):
        walk.start(y, walk.liveness.confined(grad, walk.liveness.of(y)))
    walk.run()
    return [walk.gradient(x) for x in xs]


def backward_of(forward: Function, ys: Sequence[Tensor], xs: Sequence[Tensor]) -> Backward:
    """Return the function that differentiates tensors of the inside of another one.

    Args:
        forward: The function.
        ys: Tensors of its inside at which gradients arrive.
        xs: Its parameters of which gradients are wanted.
    """
    function = _Backward(f"{forward.name}_grad", get_default_graph(), forward)
    found: list[int | Rows | None] = []
    results: list[Tensor] = []
    with inside(function):
        arriving = [function.add_parameter(gradient_spec(y), "grad") for y in ys]
        for grad in differentiate(ys, xs, arriving):
            if grad is None:
                found.append(None)
            elif isinstance(grad, IndexedSlices):
                found.append(Rows(len(results), len(results) + 1))
                results += [convert_to_tensor(grad.values), convert_to_tensor(grad.indices)]
            else:
                found.append(len(results))
                results.append(convert_to_tensor(grad))
        function.finish(results)
    function.move_out()
    return Backward(function, tuple(found), tuple(function.captures))


def gradient_spec(tensor: Tensor) -> TensorSpec:
    """Return the spec of a tensor's gradient."""
    if tensor.dtype.kind == "list":
        return TensorSpec(tensor.dtype, tensor.spec.shape, content=tensor.spec.content)
    spec = value_spec(tensor)
    return TensorSpec(spec.dtype, spec.shape)


def carries(tensor: Tensor) -> bool:
    """Whether gradients flow through a tensor."""
    return value_spec(tensor).dtype.is_differentiable


def sources(ys: Sequence[Tensor], past_stops: bool = False) -> set[Tensor]:
    """Return the tensors on which others depend differentiably, themselves included.

    Args:
        ys: The others.
        past_stops: Go on where gradients do not.
    """
    seen: set[Tensor] = set()
    stack = [y for y in ys if carries(y)]
    while stack:
        tensor = stack.pop()
        if tensor in seen:
            continue
        seen.add(tensor)
        if past_stops or not stops(tensor.op):
            stack.extend(t for t in tensor.op.inputs if carries(t))
    return seen


def view(op: Operation, **saves: Sequence[str]) -> Operation:
    """Add another view of an operation's run that yields tensors of its inside, too.

    Args:
        op: A call, condition or loop.
        saves: For attributes that name such tensors: which to name besides.
    """
    attrs = dict(op.attrs)
    for key, names in saves.items():
        attrs[key] = tuple(dict.fromkeys((*attrs[key], *names)))
        _check_saved(op, attrs[key])
    attrs["run"] = op.attrs["run"] or op.name
    names = [p.name for p in op.schema.inputs]
    with (
        use_graph(op.graph),
        name_scope(f"{op.name}_view/"),
        device(op.device_name),
        _colocated(op),
        control_dependencies(op.control_inputs),
    ):
        outputs = build_node(
            op.schema,
            {**dict(zip(names, op.grouped_inputs, strict=True)), **attrs},
            op.type.lower(),
        )
    made: Operation = outputs[0].op
    return made


# What functions that call others in both branches of conditions, or in loops, compute inside is a
# tensor for each operation on each way through them: 2^n of them n functions deep.
_MOST_SAVED = 10_000


def _check_saved(op: Operation, names: Sequence[str]) -> None:
    if len(names) > _MOST_SAVED:
        raise GraphError(
            f"the gradient of {op.type} {op.name!r} needs {len(names)} tensors from inside of it, "
            f"more than {_MOST_SAVED}: functions that call another one in several branches or "
            "loops multiply its tensors; call it once and use its result in the branches, or "
            "choose its arguments with hr.where and call it once"
        )


@contextmanager
def _colocated(op: Operation) -> Iterator[None]:
    if not op.colocated_with:
        yield
        return
    with colocate_with(op.colocated_with[-1]):
        yield


def results_of(outputs: Sequence[Tensor], found: int | Rows | None, like: Any) -> Grad:
    """Return a gradient out of what a backward function returned.

    Args:
        outputs: All its results.
        found: Where the gradient stands.
        like: Makes the shape of the whole, for a row-sparse one.
    """
    if found is None:
        return None
    if isinstance(found, Rows):
        return IndexedSlices(outputs[found.values], outputs[found.indices], like())
    return outputs[found]
