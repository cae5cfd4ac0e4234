"""Batched sums: products that a loop only adds up are one product behind the loop.

The gradient of a loop adds up the gradient of each weight matrix, a product with as few rows as a
batch has examples, iteration by iteration. Nothing in the loop reads the sum. Here the loop yields
the factors instead, as lists, and one product over the rows of all iterations makes the sum: it is
long enough to be quick, and the sum is written once instead of in every iteration.

References:
    J. Appleyard et al., Optimizing Performance of Recurrent Neural Networks on GPUs,
    arXiv:1604.01946, section 3.3: "batching" of the weight gradients over time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from headrace.graph.function import Function
from headrace.graph.operation import Operation
from headrace.graph.schema import OPS
from headrace.graph.spec import TensorSpec, list_spec
from headrace.graph.tensor import Tensor
from headrace.passes.function_copies import function_of
from headrace.passes.inline_calls import inline_calls
from headrace.passes.liveness import is_open
from headrace.passes.prune import extract, prune
from headrace.passes.step_graph import Rewriter, StepGraph
from headrace.passes.trim_loops import trim_loops
from headrace.records import dataclass

_MATRIX = 2
# Sums of 16-bit floats are rounded in each iteration; those of integers are exact and rare.
_DTYPES = ("float32", "float64")


@dataclass(frozen=True, slots=True, eq=False)
class _Sums:
    """A loop with sums of products that can be computed behind it.

    Attributes:
        inside: Its body with calls inline; the results come first among what is fetched.
        products: For the variables that are such sums, the products that are added to it.
    """

    inside: StepGraph
    products: dict[int, list[Operation]]


def batch_sums(step: StepGraph) -> StepGraph:
    """Return the step with sums of products over iterations computed behind their loops."""
    loops = [op for op in step.graph.operations if is_open(op) and not op.attrs["swap_memory"]]
    read = {t for op in step.graph.operations for t in op.inputs}
    read.update(step.fetches)
    found = {op: sums for op in loops if (sums := _sums(op, read)) is not None}
    if not found:
        return step
    rewriter = Rewriter("batch")
    for op in step.graph.operations:
        sums = found.get(op)
        if sums is None:
            rewriter.copy(op)
        else:
            _batched(rewriter, op, sums)
    # The variables that nothing needs any more go, and the products in the body with them.
    return trim_loops(rewriter.finish(step))


def _sums(op: Operation, read: set[Tensor]) -> _Sums | None:
    """Return the sums of a loop that can be computed behind it, None where there are none."""
    body: Function = op.attrs["body"]
    if not any(_may_be_sum(op, i) and op.outputs[i] in read for i in range(len(body.results))):
        return None
    saves = [body.get_tensor_by_name(name) for name in op.attrs["saves"]]
    inside = prune(inline_calls(extract((), [*body.results, *saves], body.effects)))
    uses = Counter(t for each in inside.graph.operations for t in each.inputs)
    uses.update(inside.fetches)
    waited = {c for each in inside.graph.operations for c in each.control_inputs}
    waited.update(inside.targets)
    parameters = {
        each.attrs["index"]: each.outputs[0]
        for each in inside.graph.operations
        if each.type == "Parameter"
    }
    asked = {t for each in op.attrs["cond"].operations for t in each.inputs}
    asked.update(op.attrs["cond"].results)
    products = {}
    for i in range(len(body.results)):
        held = parameters.get(i)
        if held is None or not _may_be_sum(op, i) or op.outputs[i] not in read:
            continue
        if op.attrs["cond"].parameters[i] in asked or uses[held] != 1:
            continue
        terms = _terms(inside.fetches[i], held, uses, waited)
        if terms and all(_thin(each, len(body.results), op) for each in terms):
            products[i] = terms
    return _Sums(inside, products) if products else None


def _may_be_sum(op: Operation, index: int) -> bool:
    spec = op.outputs[index].spec
    return spec.dtype.name in _DTYPES and spec.shape.rank == _MATRIX


def _terms(
    total: Tensor, held: Tensor, uses: Counter[Tensor], waited: set[Operation]
) -> list[Operation]:
    """Return the products that make a sum together with what it was; none where it is no such."""
    found: list[Operation] = []
    left = 0
    stack = [total]
    while stack:
        tensor = stack.pop()
        if tensor is held:
            left += 1
            continue
        op = tensor.op
        if uses[tensor] != 1 or op in waited or op.control_inputs:
            return []
        if op.type in ("Add", "AddN") and all(t.spec.shape == total.spec.shape for t in op.inputs):
            stack.extend(op.inputs)
        elif op.type == "MatMul" and op.attrs["transpose_a"] and not op.attrs["transpose_b"]:
            found.append(op)
        else:
            return []
    return found if left == 1 else []


def _thin(product: Operation, count: int, loop: Operation) -> bool:
    """Whether a product's factors take no more memory than the product, and are at hand."""
    if product.device_name != loop.device_name:
        return False
    shapes = [t.spec.shape for t in product.inputs]
    if not all(s.rank == _MATRIX and s.is_fully_defined() for s in shapes):
        return False
    # One that is the same in each iteration would be copied for each.
    if any(t.op.type == "Parameter" and t.op.attrs["index"] >= count for t in product.inputs):
        return False
    (inner, rows), (_, columns) = (s.known for s in shapes)
    return bool(inner * (rows + columns) <= rows * columns)


def _batched(rewriter: Rewriter, op: Operation, sums: _Sums) -> None:
    """Add a loop that yields factors, and the sums of their products behind it."""
    inside, body = sums.inside, op.attrs["body"]
    count = len(body.results)
    factors = list(
        dict.fromkeys(t for terms in sums.products.values() for each in terms for t in each.inputs)
    )
    kept = {each.attrs["index"]: each for each in inside.graph.operations if _is_parameter(each)}
    fetches = [
        kept[i].outputs[0] if i in sums.products else t
        for i, t in enumerate(inside.fetches[:count])
    ]
    wanted = [*inside.fetches[count:], *factors]
    step = StepGraph(inside.graph, (), (*fetches, *wanted), inside.targets)
    made, fetched = function_of(body, step, range(len(body.parameters)), count)
    attrs: dict[str, Any] = dict(op.attrs)
    attrs["body"], attrs["saves"] = made, tuple(t.name for t in fetched[count:])
    specs = [*(t.spec for t in op.outputs), *(list_spec(t.spec) for t in factors)]
    new = rewriter.copy_with(op, attrs=attrs, specs=specs)
    for old, tensor in zip(op.outputs, new.outputs, strict=False):
        rewriter.stand_for_tensor(old, tensor)
    lists = dict(zip(factors, new.outputs[len(op.outputs) :], strict=True))
    for i, terms in sums.products.items():
        total = new.inputs[i]
        for product in terms:
            given = [lists[t] for t in product.inputs]
            more = _add(rewriter, op, product, "TensorListSumProducts", given)
            total = _add(rewriter, op, product, "Add", [total, more])
        rewriter.stand_for_tensor(op.outputs[i], total)


def _is_parameter(op: Operation) -> bool:
    return op.type == "Parameter"


def _add(
    rewriter: Rewriter, loop: Operation, like: Operation, kind: str, inputs: Sequence[Tensor]
) -> Tensor:
    """Add an operation beside a loop that does the work of one in its body."""
    schema = OPS[kind]
    arity = (1,) * len(inputs)
    found: Sequence[TensorSpec]
    found, _ = schema.output_specs([t.spec for t in inputs], arity, {})
    made = rewriter.graph.add_operation(
        schema,
        name=rewriter.graph.unique_full_name(f"{loop.name}/{kind}"),
        inputs=list(inputs),
        arity=arity,
        attrs={},
        specs=found,
        device=loop.device_name,
        site=like.site,
        origin=f"{rewriter.name} of {like.name!r}",
    )
    return made.outputs[0]
