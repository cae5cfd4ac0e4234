"""Narrow products: of a product that is split, only the part that is needed is computed.

The gradient of joined inputs, as of what a recurrent cell multiplies with its weights, is a product
that is split into the gradients of each. Often only one of them is asked for. The rows of a
matrix lie together, so that what multiplies with some of them needs no copy.
"""

from __future__ import annotations

from collections.abc import Mapping

from headrace.graph.operation import Operation
from headrace.graph.schema import OPS
from headrace.graph.tensor import Tensor
from headrace.passes.step_graph import Rewriter, StepGraph

_MATRIX = 2


def narrow_products(step: StepGraph) -> StepGraph:
    """Return the step with products of which one part is needed narrowed to that part."""
    splits = [op for op in step.graph.operations if op.type == "Split"]
    if not splits:
        return step
    users: dict[Tensor, list[Operation]] = {}
    for op in step.graph.operations:
        for tensor in op.inputs:
            users.setdefault(tensor, []).append(op)
    fetched = {*step.fetches, *step.feeds}
    waited = {c for op in step.graph.operations for c in op.control_inputs}
    waited.update(step.targets)
    found: dict[Operation, Operation] = {}
    for op in splits:
        product = op.inputs[0].op
        read = [t for t in op.outputs if t in users or t in fetched]
        alone = users[op.inputs[0]] == [op] and op.inputs[0] not in fetched
        if len(read) == 1 and alone and waited.isdisjoint((op, product)) and _divides(op, product):
            found[product] = op
    return _narrowed(step, found, users, fetched) if found else step


def _divides(split: Operation, product: Operation) -> bool:
    """Whether the parts of a product are products with some rows of one of its factors."""
    if product.type != "MatMul" or product.control_inputs or split.control_inputs:
        return False
    if any(t.spec.shape.rank != _MATRIX for t in product.inputs):
        return False
    if not all(t.spec.shape.is_fully_defined() for t in (*product.inputs, *split.outputs)):
        return False
    if product.device_name != split.device_name:
        return False
    by_rows = split.attrs["axis"] % _MATRIX == 0
    return not product.attrs["transpose_a"] if by_rows else bool(product.attrs["transpose_b"])


def _narrowed(
    step: StepGraph,
    found: Mapping[Operation, Operation],
    users: Mapping[Tensor, list[Operation]],
    fetched: set[Tensor],
) -> StepGraph:
    rewriter = Rewriter("narrow")
    dropped = set(found.values())
    rows: dict[tuple[Tensor, tuple[int, ...]], Operation] = {}
    for op in step.graph.operations:
        split = found.get(op)
        if split is not None:
            index = next(t.index for t in split.outputs if t in users or t in fetched)
            made = _part(rewriter, op, split, index, rows)
            rewriter.stand_for_operation(op, made)
            rewriter.stand_for_operation(split, made)
            rewriter.stand_for_tensor(split.outputs[index], made.outputs[0])
        elif op not in dropped:
            rewriter.copy(op)
    return rewriter.finish(step)


def _part(
    rewriter: Rewriter,
    product: Operation,
    split: Operation,
    index: int,
    rows: dict[tuple[Tensor, tuple[int, ...]], Operation],
) -> Operation:
    """Add the product that yields one part of another."""
    place = split.attrs["axis"] % _MATRIX
    factors = [rewriter.tensor(t) for t in product.inputs]
    attrs = {"sizes": split.attrs["sizes"], "axis": 0}
    key = factors[place], tuple(attrs["sizes"])
    divided = rows.get(key)
    if divided is None:
        schema = OPS["Split"]
        specs, _ = schema.output_specs([factors[place].spec], (1,), attrs)
        divided = rows[key] = rewriter.graph.add_operation(
            schema,
            name=split.name,
            inputs=[factors[place]],
            arity=(1,),
            attrs=attrs,
            specs=specs,
            device=split.device_name,
            site=split.site,
            origin=f"{rewriter.name} of {product.name!r}",
        )
    factors[place] = divided.outputs[index]
    return rewriter.graph.add_operation(
        product.schema,
        name=product.name,
        inputs=factors,
        arity=product.arity,
        attrs=product.attrs,
        specs=[split.outputs[index].spec],
        device=product.device_name,
        site=product.site,
        origin=product.origin or f"{rewriter.name} of {product.name!r}",
    )
