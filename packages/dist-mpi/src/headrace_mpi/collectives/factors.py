"""The pass that lets the factors of a product travel instead of the product.

Where a large sum over the ranks is one of matrix products that nothing else reads, such as the
gradients of a weight matrix, one collective makes both (``products.py``). It finds out in the step
whether the factors are small enough: how many rows a batch has is mostly not known before.
"""

from __future__ import annotations

from collections import Counter

from headrace import Operation, float32, float64
from headrace.extend.passes import PassContext, Rewrite, Rewriter, StepGraph
from headrace.extend.plugins import host
from headrace_mpi.collectives.groups import is_alone
from headrace_mpi.collectives.planning import ALONE_BYTES, nbytes_of
from headrace_mpi.ops import collective as ops

PASS = "sum-factors"
_SUM = ops.all_reduce.schema.type
_PRODUCT = "MatMul"
_KEPT = ("transpose_a", "transpose_b")


def sum_factors(step: StepGraph, context: PassContext) -> StepGraph:
    """Return a step whose large sums of products are made of the factors.

    Args:
        step: A graph just cut out of a program, before its collectives are planned.
        context: Takes a note of what was changed.
    """
    found = _sums_of_products(step)
    if not found or is_alone():
        return step
    rewriter = Rewriter(PASS)
    for op in step.graph.operations:
        if op not in found:
            rewriter.copy(op)
            continue
        product = op.inputs[0].op
        _add(rewriter, op, product)
        reason = "the factors of a product travel where they are smaller than it"
        names = (op.name, product.name)
        context.rewrites.append(Rewrite(PASS, reason, names, op.site, "mpi"))
    return rewriter.finish(step)


def _sums_of_products(step: StepGraph) -> set[Operation]:
    graph = step.graph
    sums = [op for op in graph.operations if op.type == _SUM and _is_candidate(op)]
    if not sums:
        return set()
    uses = Counter(t for op in graph.operations for t in op.inputs)
    uses.update(step.fetches)
    waited = {c for op in graph.operations for c in op.control_inputs} | set(step.targets)
    return {op for op in sums if uses[op.inputs[0]] == 1 and op.inputs[0].op not in waited}


def _is_candidate(op: Operation) -> bool:
    """Whether a sum is one of products of matrices on the host, and large."""
    if op.arity != (1,) or op.attrs["place"] != ops.UNPLANNED:
        return False
    if op.attrs["reduction"] not in ("sum", "mean"):
        return False
    total, product = op.inputs[0], op.inputs[0].op
    if product.type != _PRODUCT or total.dtype not in (float32, float64):
        return False
    if any(factor.spec.rank != 2 for factor in product.inputs):
        return False
    nbytes = nbytes_of(op)
    return nbytes is not None and nbytes >= ALONE_BYTES and _is_on_host(product)


def _is_on_host(op: Operation) -> bool:
    """Whether an operation runs on a cpu: devices that are quicker at products compute theirs."""
    asked = op.device_name
    if asked.kind is not None:
        return asked.kind == "cpu"
    plugins = host()
    able = set(plugins.kernels.devices_of(op.type))
    return not any(
        kind.name != "cpu" and kind.name in able and plugins.count_devices(kind)[0]
        for kind in plugins.devices
    )


def _add(rewriter: Rewriter, op: Operation, product: Operation) -> None:
    kept = {name: product.attrs[name] for name in _KEPT}
    made = rewriter.graph.add_operation(
        ops.all_reduce_product.schema,
        name=op.name,
        inputs=[rewriter.tensor(t) for t in product.inputs],
        arity=(1, 1),
        attrs={
            **kept,
            "reduction": op.attrs["reduction"],
            "place": ops.UNPLANNED,
            "plan": (),
        },
        specs=[op.outputs[0].spec],
        control_inputs=tuple(
            dict.fromkeys(
                (*rewriter.controls(op.control_inputs), *rewriter.controls(product.control_inputs))
            )
        ),
        device=op.device_name,
        colocated_with=rewriter.controls(op.colocated_with),
        site=op.site,
        origin=f"{PASS} of {op.type} and {product.type}",
    )
    rewriter.stand_for(op, made)
