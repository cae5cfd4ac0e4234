"""Spec checks: what is inferred before a step agrees with what the step produces."""

from __future__ import annotations

from headrace import Graph
from headrace_testing.build import (
    Bench,
    Outcome,
    Variant,
    as_arrays,
    as_constant,
    flat,
    make_values,
    one_per_kind,
    run_variants,
    swept,
)
from headrace_testing.checks.forward import compare
from headrace_testing.failure import fail
from headrace_testing.inputs import NDArray
from headrace_testing.sample import Sample
from headrace_testing.sessions import open_session


def check_inferred_shape(sample: Sample, device: str) -> None:
    """Constants in: the inferred shape is fully known and the one produced."""
    dtype = swept(sample)[0]
    values = make_values(sample.inputs, dtype, sample.seed)
    variant = Variant(f"constants {dtype or ''}".strip(), values, as_constant)
    for outcome in run_variants(sample, device, [variant]):
        for tensor in outcome.tensors:
            if sample.exact_shape and not tensor.shape.is_fully_defined():
                problem = (
                    f"output {tensor.index} is {tensor.spec} though all inputs are constants; "
                    "let the rule infer it, or set exact_shape=False"
                )
                raise fail(sample, device, variant.label, problem, flat(values))
        compare(sample, device, outcome)


def check_unknown_shapes(sample: Sample, device: str) -> None:
    """Feed placeholders of partly and wholly unknown shape: same results, no contradiction."""
    variants = []
    for dtype in one_per_kind(swept(sample))[:1]:
        values = make_values(sample.inputs, dtype, sample.seed)
        for label, entry in (
            ("unknown first dimension", _first_unknown),
            ("unknown dimensions", _dims_unknown),
            ("unknown rank", _rank_unknown),
        ):
            variants.append(Variant(label, values, entry))
    for outcome in run_variants(sample, device, variants):
        compare(sample, device, outcome)


def check_document(sample: Sample, device: str) -> None:
    """Write the graph to a document and read it back: the same document, the same results."""
    for dtype in one_per_kind(swept(sample)):
        bench = Bench(sample, device)
        values = make_values(sample.inputs, dtype, sample.seed)
        variant = Variant(f"document {dtype or ''}".strip(), values)
        if bench.add(variant) is None:
            continue
        text = bench.graph.to_document()
        copy = Graph.from_document(text)
        again = copy.to_document()
        if again != text:
            problem = f"the document changed when it was read and written\n{text}\n{again}"
            raise fail(sample, device, variant.label, problem)
        op = copy.get_operation_by_name(bench.nodes[0][1].name)
        original = bench.run()[0]
        tensors = tuple(op.outputs[t.index] for t in original.tensors)
        for mine, theirs in zip(tensors, original.tensors, strict=True):
            if mine.dtype != theirs.dtype or mine.spec.shape != theirs.spec.shape:
                problem = f"output {mine.index} is {mine.spec}, was {theirs.spec}"
                raise fail(sample, device, variant.label, problem)
        feeds = {copy.get_tensor_by_name(t.name): a for t, a in bench.feeds.items()}
        with open_session(copy) as session:
            results = as_arrays(tensors, session.run(list(tensors), feeds))
        outcome = Outcome(variant, op, tensors, results)
        compare(sample, device, outcome, list(original.results) if sample.oracle else None)


def _first_unknown(array: NDArray) -> list[int | None]:
    return [None, *array.shape[1:]] if array.ndim else []


def _dims_unknown(array: NDArray) -> list[int | None]:
    return [None] * array.ndim


def _rank_unknown(array: NDArray) -> None:
    return None
