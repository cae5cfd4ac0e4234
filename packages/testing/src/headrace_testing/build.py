"""Building samples into graphs, and running many of them in one step."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import headrace as hr
from headrace import Config, DType, Graph, Operation, Tensor, constant, placeholder
from headrace import device as device_scope
from headrace.errors import HeadraceError
from headrace.extend.kernels import kernel_dtype
from headrace.extend.ops import ALL_DTYPES, OPS
from headrace.extend.plugins import host
from headrace_testing.failure import SkipCheck, fail
from headrace_testing.inputs import Input, NDArray
from headrace_testing.sample import Inputs, Row, Sample
from headrace_testing.sessions import kind_of, open_session

# A sample's arrays: one entry per parameter, shaped as its inputs.
Values = list[Any]

# How an input enters a graph: the static shape of its placeholder, or CONSTANT.
Entry = Callable[[NDArray], Any]
CONSTANT = object()


def as_constant(array: NDArray) -> Any:
    """Enter as a constant."""
    return CONSTANT


def as_fed(array: NDArray) -> Any:
    """Enter as a placeholder whose shape is known."""
    return array.shape


@dataclass(frozen=True, slots=True)
class Variant:
    """One way of running a sample.

    Attributes:
        label: Tells it apart in messages.
        values: The arrays.
        entry: How they enter the graph.
    """

    label: str
    values: Values
    entry: Entry = as_fed


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a variant.

    Attributes:
        variant: The variant.
        op: The node.
        tensors: The outputs that are looked at.
        results: Their values.
    """

    variant: Variant
    op: Operation
    tensors: tuple[Tensor, ...]
    results: list[NDArray]


def nested(function: Callable[[Any], Any], values: Sequence[Any]) -> Values:
    """Apply a function to every array of a sample, or to every maker."""
    mapped: Values = []
    for value in values:
        if isinstance(value, list | tuple):
            mapped.append([function(item) for item in value])
        else:
            mapped.append(None if value is None else function(value))
    return mapped


def flat(values: Sequence[Any]) -> list[Any]:
    """Return all arrays of a sample in one list."""
    listed: list[Any] = []
    for value in values:
        if value is not None:
            listed.extend(value if isinstance(value, list) else [value])
    return listed


def make_values(inputs: Inputs, dtype: DType | None, seed: int = 0) -> Values:
    """Return the arrays that a row's makers yield for one dtype of the sweep."""
    count = 0

    def make(maker: Input) -> NDArray:
        nonlocal count
        count += 1
        return maker.make(dtype, (seed, count))

    return nested(make, inputs)


def swept(sample: Sample) -> list[DType | None]:
    """Return the dtypes that a sample is run with; None where all of its inputs have their own."""
    schema = OPS[sample.op]
    if sample.dtypes is not None:
        return [hr.as_dtype(d) for d in sample.dtypes]
    kinds = [
        param.kind
        for param, entry in zip(schema.inputs, sample.inputs, strict=True)
        for maker in (entry if isinstance(entry, Sequence) else [entry])
        if maker is not None and maker.dtype is None
    ]
    if not kinds:
        return [None]
    fed = [d for d in ALL_DTYPES if d.kind not in ("resource", "list", "quantized")]
    return [d for d in fed if all(kind.accepts(d) for kind in kinds)]


def one_per_kind(candidates: Sequence[DType | None]) -> list[DType | None]:
    """Return the most usual of the dtypes of each kind, for what hardly depends on it."""
    usual = ("float32", "int32", "uint8", "bool", "complex64", "string")
    chosen = [d for d in candidates if d is None or d.name in usual]
    return chosen or list(candidates[:1])


def add_node(row: Row, tensors: Sequence[Any]) -> Operation:
    """Add a row's op to the default graph."""
    schema = OPS[row.op]
    inputs = dict(zip((p.name for p in schema.inputs), tensors, strict=True))
    made = schema.function(**inputs, **row.attrs)
    if isinstance(made, list | tuple):
        made = made[0]
    op = made.op if isinstance(made, Tensor) else made
    assert isinstance(op, Operation)
    return op


def outputs_of(sample: Sample, op: Operation) -> tuple[Tensor, ...]:
    """Return the outputs of a node that the sample is about."""
    if sample.outputs is None:
        return op.outputs
    return tuple(op.outputs[i] for i in sample.outputs)


def as_arrays(tensors: Sequence[Tensor], results: Sequence[Any]) -> list[NDArray]:
    """Return fetched values as arrays: of those without dimensions, sessions return the element."""
    return [
        np.asarray(r, object if t.dtype == hr.string else None)
        for t, r in zip(tensors, results, strict=True)
    ]


class Bench:
    """A graph with variants of a sample in it, run together in one step."""

    def __init__(self, sample: Sample, device: str) -> None:
        self.sample = sample
        self.device = device
        self.graph = Graph()
        self.nodes: list[tuple[Variant, Operation]] = []
        self.lacking = False
        self.feeds: dict[Tensor, NDArray] = {}

    def enter(self, array: NDArray, entry: Entry) -> Tensor:
        """Add one input to the default graph."""
        shape = entry(array)
        if shape is CONSTANT:
            return constant(array)
        dtype = hr.string if array.dtype == object else array.dtype
        tensor = placeholder(dtype, shape)
        self.feeds[tensor] = array
        return tensor

    def add(self, variant: Variant) -> Operation | None:
        """Add a variant; None where the device has no kernel for its dtypes."""
        with self.graph.as_default():
            tensors = nested(lambda a: self.enter(a, variant.entry), variant.values)
            with device_scope(self.device):
                op = add_node(self.sample, tensors)
        if not runs_on(op, self.device):
            self.lacking = self.lacking or holds(op, self.device)
            for tensor in op.inputs:
                self.feeds.pop(tensor, None)
            return None
        self.nodes.append((variant, op))
        return op

    def run(self, config: Config | None = None) -> list[Outcome]:
        """Run all variants in one step."""
        tensors = [outputs_of(self.sample, op) for _, op in self.nodes]
        with open_session(self.graph, config) as session:
            results = session.run([list(t) for t in tensors], self.feeds)
        return [
            Outcome(variant, op, outputs, as_arrays(outputs, values))
            for (variant, op), outputs, values in zip(self.nodes, tensors, results, strict=True)
        ]


def run_variants(
    sample: Sample,
    device: str,
    variants: Sequence[Variant],
    config: Config | None = None,
) -> list[Outcome]:
    """Run variants of a sample in one step, or one by one where that fails, to name the culprit.

    Raises:
        ConformanceError: if one cannot be built or run.
        SkipCheck: if the device has no kernel for any of them.
    """
    try:
        outcomes, lacking = _run_together(sample, device, variants, config)
    except HeadraceError:
        outcomes, lacking = [], False
        for variant in variants:
            try:
                outcomes += _run_together(sample, device, [variant], config)[0]
            except HeadraceError as error:
                raise fail(sample, device, variant.label, f"the op fails\n{error}") from error
    if not outcomes:
        reason = f"{device} has no kernel of {sample.op} for {_dtypes_text(variants)}"
        # An op may run on the host alone; where others have a kernel, it takes all stated dtypes.
        other = kind_of(device) in host().kernels.devices_of(sample.op)
        if lacking and (kind_of(device) == "cpu" or (other and sample.dtypes is not None)):
            raise fail(sample, device, "all variants", reason)
        raise SkipCheck(reason)
    return outcomes


def _run_together(
    sample: Sample, device: str, variants: Sequence[Variant], config: Config | None
) -> tuple[list[Outcome], bool]:
    """Return the outcomes, and whether a kernel was missing for dtypes that the device holds."""
    bench = Bench(sample, device)
    for variant in variants:
        bench.add(variant)
    return bench.run(config) if bench.nodes else [], bench.lacking


def holds(op: Operation, device: str) -> bool:
    """Whether arrays of a kind of devices can have the dtypes of a node."""
    kind = host().devices.get(kind_of(device))
    held = None if kind is None else kind.dtypes
    return held is None or all(t.dtype.name in held for t in (*op.inputs, *op.outputs))


def runs_on(op: Operation, device: str) -> bool:
    """Whether a kind of devices has a kernel for a node, and holds its dtypes."""
    name = kind_of(device)
    covered = op.schema.builtin or host().kernels.covers(op.type, name, kernel_dtype(op))
    return covered and holds(op, device)


def expectation(sample: Sample, values: Values) -> list[Any]:
    """Return what the oracle says for a sample's arrays, one entry per output looked at."""
    assert sample.oracle is not None
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        answer = sample.oracle(*nested(_wide, values), **sample.attrs)
    return list(answer) if isinstance(answer, tuple) else [answer]


def _wide(array: NDArray) -> NDArray:
    dtype = None if array.dtype == object else hr.as_dtype(array.dtype)
    if dtype is not None and dtype.is_floating:
        return array.astype(np.float64)
    if dtype is not None and dtype.is_complex:
        return array.astype(np.complex128)
    if dtype is not None and dtype.is_quantized:
        return array.view(dtype.numpy).copy()
    return array.copy()


def _dtypes_text(variants: Sequence[Variant]) -> str:
    names = {
        "string" if a.dtype == object else str(a.dtype) for v in variants for a in flat(v.values)
    }
    return ", ".join(sorted(names)) or "no inputs"
