"""The pass that prepares the collectives of a step, alike on all ranks that run one program.

What the ranks do must not hang on which of their operations happens to be ready first. So the
order is one of the graph: by *level*, how many collectives lie before it on the longest way, and
then in the order in which the inputs were built. Gradients are built from the last layer to the
first, so the layers whose gradients are there first come first.

Sums of one level travel together, as long as they fit in a bucket: no way leads from one of a level
to another, so what needs one of a bucket never comes before what another one needs. Large ones
travel alone: they are not copied into a bucket, do not wait for the others, and what needs them
does not, either.

Each collective gets its place in the step, and the lines that describe all of them; the ranks
compare these before they exchange values (``group_step.py``).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field

from headrace import Operation, Tensor
from headrace.errors import GraphError
from headrace.extend.graphs import functions_in, in_order
from headrace.extend.passes import PassContext, Rewrite, Rewriter, StepGraph
from headrace_mpi.ops import collective as ops

PASS = "plan-collectives"
# To copy so much into a bucket takes longer than a message of its own.
ALONE_BYTES = 4 << 20
_ALL_REDUCE = ops.all_reduce.schema.type


@dataclass(slots=True, eq=False)
class _Bucket:
    """Collectives that travel together: one, or several sums."""

    ops: list[Operation] = field(default_factory=list)
    filled_bytes: int = 0


def plan_collectives(step: StepGraph, context: PassContext) -> StepGraph:
    """Return a step whose collectives are ordered, packed and described.

    Args:
        step: A graph just cut out of a program.
        context: Takes a note of what was packed.

    Raises:
        GraphError: if a collective is in a function that runs any number of times, such as a
            branch of a condition.
    """
    _refuse_inside_functions(step)
    found = [op for op in step.graph.operations if op.type in ops.COLLECTIVES]
    if not found or all(op.attrs["place"] != ops.UNPLANNED for op in found):
        return step
    buckets = _buckets(_ordered(step, found))
    plan = tuple(
        f"{place}: {describe(op)}" for place, bucket in enumerate(buckets) for op in bucket.ops
    )
    for bucket in (b for b in buckets if len(b.ops) > 1):
        reason = f"{len(bucket.ops)} sums of {bucket.filled_bytes} bytes travel together"
        names = tuple(op.name for op in bucket.ops)
        context.rewrites.append(Rewrite(PASS, reason, names, bucket.ops[0].site, "mpi"))
    return _rewritten(step, buckets, plan)


@functools.lru_cache(maxsize=256)
def places_of(plan: tuple[str, ...]) -> int:
    """Return how many messages the collectives of a plan travel in; several may share one."""
    return int(plan[-1].partition(":")[0]) + 1


def text_of(line: str) -> str:
    """Return what a line of a plan says of its collective."""
    return line.partition(": ")[2]


def _refuse_inside_functions(step: StepGraph) -> None:
    for function in functions_in(step.graph):
        for op in function.operations:
            if op.type in ops.COLLECTIVES:
                raise GraphError(
                    f"{op.type} {op.name!r} is inside the function {function.name!r} of an "
                    "operation such as a condition or a loop, which other ranks may run another "
                    "number of times, so that they would wait for each other; move it out: reduce "
                    f"what the condition or loop yields\n  at {op.site}"
                )


def _ordered(step: StepGraph, found: Sequence[Operation]) -> list[tuple[int, Operation]]:
    """Return levels and collectives, in the order in which the ranks exchange values."""
    position: dict[Operation, int] = {}
    level: dict[Operation, int] = {}
    collectives = set(found)
    for index, op in enumerate(step.graph.operations):
        position[op] = index
        before = (*(t.op for t in op.inputs), *op.control_inputs)
        level[op] = max((level[b] + (b in collectives) for b in before), default=0)

    def key(op: Operation) -> tuple[int, int, int]:
        built = max((position[t.op] for t in op.inputs), default=position[op])
        return level[op], built, position[op]

    return [(level[op], op) for op in sorted(found, key=key)]


def _buckets(ordered: Sequence[tuple[int, Operation]]) -> list[_Bucket]:
    buckets: list[_Bucket] = []
    filling: dict[tuple[object, ...], _Bucket] = {}
    for level, op in ordered:
        nbytes = nbytes_of(op)
        limit = op.attrs.get("bucket_bytes", 0)
        alone = _Bucket([op], nbytes or 0)
        if op.type != _ALL_REDUCE or nbytes is None or nbytes >= min(limit, ALONE_BYTES):
            buckets.append(alone)
            continue
        key = (level, op.inputs[0].dtype, op.attrs["reduction"], limit, str(op.device_name))
        bucket = filling.get(key)
        if bucket is None or bucket.filled_bytes + nbytes > limit:
            filling[key] = alone
            buckets.append(alone)
            continue
        bucket.ops.append(op)
        bucket.filled_bytes += nbytes
    return buckets


def nbytes_of(op: Operation) -> int | None:
    """Return the bytes of the inputs of an operation, None where a shape is not known."""
    total = 0
    for tensor in op.inputs:
        shape = tensor.spec.shape
        elements = shape.num_elements()
        if elements is None:
            return None
        total += elements * tensor.dtype.itemsize
    return total


def describe(op: Operation) -> str:
    """Return a line that is the same on all ranks where a collective is the same."""
    parts = [op.type]
    if "reduction" in op.attrs:
        parts.append(op.attrs["reduction"])
    if "root" in op.attrs:
        parts.append(f"root={op.attrs['root']}")
    by_rows = op.type in (ops.all_gather.schema.type, ops.all_to_all.schema.type)
    if op.type == ops.all_reduce_product.schema.type:
        # How many rows the factors have is each rank's own matter.
        parts.append(_spec(op.outputs[0], by_rows=False))
    elif op.type != ops.barrier.schema.type:
        # Other inputs say how many rows go where, which is each rank's own matter.
        parts += [_spec(t, by_rows) for t in op.inputs if op.arity[0] > 1 or t is op.inputs[0]]
    return f"{' '.join(parts)} {op.name!r}"


def _spec(tensor: Tensor, by_rows: bool) -> str:
    shape = tensor.spec.shape
    if shape.dims is None:
        return f"{tensor.dtype.name}[...]"
    dims = ["?" if dim is None else str(dim) for dim in shape]
    if by_rows:
        dims[:1] = ["rows"]
    return f"{tensor.dtype.name}[{', '.join(dims)}]"


def _rewritten(step: StepGraph, buckets: Sequence[_Bucket], plan: tuple[str, ...]) -> StepGraph:
    places = {bucket: place for place, bucket in enumerate(buckets)}
    unit_of: dict[Operation, Operation | _Bucket] = {
        op: bucket for bucket in buckets for op in bucket.ops
    }

    def needed(unit: Operation | _Bucket) -> list[Operation | _Bucket]:
        parts = unit.ops if isinstance(unit, _Bucket) else [unit]
        before = (b for op in parts for b in (*(t.op for t in op.inputs), *op.control_inputs))
        return list(dict.fromkeys(unit_of.get(b, b) for b in before))

    units = list(dict.fromkeys(unit_of.get(op, op) for op in step.graph.operations))
    rewriter = Rewriter(PASS)
    for unit in in_order(units, needed):
        if isinstance(unit, _Bucket):
            _add(rewriter, unit, places[unit], plan)
        else:
            rewriter.copy(unit)
    return rewriter.finish(step)


def _add(rewriter: Rewriter, bucket: _Bucket, place: int, plan: tuple[str, ...]) -> None:
    first = bucket.ops[0]
    many = len(bucket.ops) > 1
    made = rewriter.graph.add_operation(
        first.schema,
        name=first.name,
        inputs=[rewriter.tensor(t) for op in bucket.ops for t in op.inputs],
        arity=(sum(op.arity[0] for op in bucket.ops),) if many else first.arity,
        attrs={**first.attrs, "place": place, "plan": plan},
        specs=[t.spec for op in bucket.ops for t in op.outputs],
        control_inputs=tuple(
            dict.fromkeys(c for op in bucket.ops for c in rewriter.controls(op.control_inputs))
        ),
        device=first.device_name,
        colocated_with=rewriter.controls(first.colocated_with),
        site=first.site,
        origin=first.origin if not many else f"{PASS} of {len(bucket.ops)} {first.type}",
        gradient_rule=first.gradient_rule,
    )
    outputs = iter(made.outputs)
    for op in bucket.ops:
        rewriter.stand_for_operation(op, made)
        for old in op.outputs:
            rewriter.stand_for_tensor(old, next(outputs))
