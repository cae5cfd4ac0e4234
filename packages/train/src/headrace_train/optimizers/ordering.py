"""What an update must wait for, so that gradients and losses see the values from before it.

A gradient often depends on all reads of its variable, and then the data edges order the update
after them. They do not always: in ``loss = sum(a * b)`` the gradient of ``a`` is the value of
``b``, so that nothing but an edge from the read of ``a`` keeps its update from coming first and
changing the gradient of ``b``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from headrace import Operation, Tensor, Variable


def reads_to_await(
    roots: Iterable[Tensor], gradients: Mapping[Variable, Sequence[Tensor]]
) -> dict[Variable, list[Operation]]:
    """Return for each variable the reads that its update must be told to wait for.

    These are the reads on which the roots depend, less those that have run anyway when the
    variable's gradient is there. Reads that may be dead (made inside one branch of a switch) are
    left out, for an update that waits for a dead node is dead itself.

    Args:
        roots: The gradients of all variables, and the losses.
        gradients: For each variable the tensors that its gradient consists of.
    """
    by_handle = {variable.handle: variable for variable in gradients}
    reads: dict[Variable, list[tuple[int, Operation]]] = {variable: [] for variable in gradients}
    # Which reads have run when an operation has, as the bits of a number.
    behind: dict[Operation, int] = {}
    may_be_dead: set[Operation] = set()
    count = 0
    for op in _ancestors(roots):
        sources = [tensor.op for tensor in op.inputs]
        if op.type == "Switch" or any(
            source in may_be_dead for source in (*sources, *op.control_inputs)
        ):
            may_be_dead.add(op)
        if op.type == "Merge":
            # Only one of its inputs lives.
            bits = ~0
            for source in sources:
                bits &= behind.get(source, 0)
        else:
            bits = 0
            for source in sources:
                bits |= behind.get(source, 0)
        for source in op.control_inputs:
            bits |= behind.get(source, 0)
        if op.type == "ReadVariable" and op not in may_be_dead:
            variable = by_handle.get(op.inputs[0])
            if variable is not None:
                reads[variable].append((1 << count, op))
                bits |= 1 << count
                count += 1
        behind[op] = bits
    awaited: dict[Variable, list[Operation]] = {}
    for variable, tensors in gradients.items():
        done = 0
        for tensor in tensors:
            done |= behind[tensor.op]
        awaited[variable] = [op for bit, op in reads[variable] if not done & bit]
    return awaited


def _ancestors(roots: Iterable[Tensor]) -> list[Operation]:
    """Return all operations on which ``roots`` depend, and theirs, each after its own."""
    found: set[Operation] = set()
    waiting = [tensor.op for tensor in roots]
    while waiting:
        op = waiting.pop()
        if op in found:
            continue
        found.add(op)
        waiting += [tensor.op for tensor in op.inputs]
        waiting += op.control_inputs
    # A graph only grows at its end, so what is older cannot depend on what is younger.
    return sorted(found, key=lambda op: op.index)
