"""The function that makes the data set of a one-shot iterator: a copy of what it depends on."""

from __future__ import annotations

from headrace import Operation, Tensor
from headrace.errors import GraphError
from headrace.extend.graphs import Function, in_order

_STARTS_BY_ITSELF = (
    "Cannot capture a {what} by a one-shot iterator, which starts by itself, before anything is "
    "fed or initialized: {name!r}\n  at {site}\nUse make_initializable_iterator() and run its "
    "initializer instead"
)


def factory(variant: Tensor) -> Function:
    """Return a function without arguments that makes a data set.

    Raises:
        GraphError: if it depends on a placeholder, or on state.
    """
    function = Function("one_shot", variant.graph)
    stands: dict[Tensor, Tensor] = {}
    operations: dict[Operation, Operation] = {}
    for op in _needed(variant.op):
        _check(op)
        copy = function.add_operation(
            op.schema,
            name=op.name,
            inputs=[stands[t] for t in op.inputs],
            arity=op.arity,
            attrs=op.attrs,
            specs=[t.spec for t in op.outputs],
            control_inputs=tuple(operations[c] for c in op.control_inputs),
            device=op.device_name,
            site=op.site,
            origin=op.origin,
            copy_of=op.copy_of,
        )
        operations[op] = copy
        stands.update(zip(op.outputs, copy.outputs, strict=True))
    function.complete([], [stands[variant]])
    return function


def _needed(op: Operation) -> list[Operation]:
    """Return an operation and all that it depends on, each after what it needs."""
    found: dict[Operation, None] = {}
    waiting = [op]
    while waiting:
        current = waiting.pop()
        if current not in found:
            found[current] = None
            waiting += _before(current)
    return in_order(list(found), _before)


def _before(op: Operation) -> list[Operation]:
    return [*(t.op for t in op.inputs), *op.control_inputs]


def _check(op: Operation) -> None:
    what = ""
    if op.type in ("Placeholder", "Parameter"):
        what = "placeholder" if op.type == "Placeholder" else "tensor of the function around it"
    elif op.type != "Dataset" and any(t.dtype.kind == "resource" for t in op.outputs):
        what = "stateful node (variable, table or queue)"
    if what:
        raise GraphError(_STARTS_BY_ITSELF.format(what=what, name=op.name, site=op.site))
