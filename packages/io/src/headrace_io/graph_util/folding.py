"""Folding batch normalization, and other scaling by constants, into the weights before it.

A convolution or matrix product ``y = x * w`` followed by ``(y - m) * s + b``, with constants for
each channel, equals ``x * (w s) + (b - m s)``.

References:
    Jacob et al., Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only
    Inference, 2018, section 3.2, equation 14.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

import headrace as hr
from headrace import Graph, Operation, Tensor
from headrace.extend.arguments import items
from headrace.extend.graphs import functions_in
from headrace_io.dtype_protos import number_of
from headrace_io.graph_import.importing import read_graph_def
from headrace_io.graph_util.nodes import node_name, on_graphs, without
from headrace_io.tensor_protos import make_tensor_proto

_Array = np.ndarray[Any, np.dtype[Any]]


def fold_batch_norms(input_graph_def: Any, protected_nodes: Iterable[str] | None = None) -> Any:
    """Return a graph without the multiplications by which batch normalization scales.

    Weights and what is computed from the statistics must be constants: convert variables first,
    with ``convert_variables_to_constants``. Convolutions in two dimensions with the channels last,
    also depthwise ones, and matrix products are folded, where nothing else takes what is between
    them and the last constant. Results differ by rounding.

    Args:
        input_graph_def: A ``GraphDef``, or a ``Graph``.
        protected_nodes: Names of nodes that stay as they are, such as further outputs of the graph.

    Returns:
        A ``GraphDef``, or a new ``Graph`` where one was given.

    Raises:
        ArgumentTypeError: if ``input_graph_def`` is neither.
    """
    kept = set(items(protected_nodes or (), "protected_nodes"))
    return on_graphs(input_graph_def, lambda message: _folded(message, kept))


@final
@dataclass(slots=True)
class _Chain:
    """A product, and the operations that scale and shift its channels.

    Attributes:
        product: The convolution or matrix product.
        weights: Its weights.
        steps: The operations after it, each with the constant that it takes.
    """

    product: Operation
    weights: Tensor
    steps: list[tuple[Operation, Tensor]]


def _folded(message: Any, kept: set[str]) -> Any:
    graph = read_graph_def(message)
    chains = _chains(graph, kept)
    constants = list({t for c in chains for t in (c.weights, *(t for _, t in c.steps))})
    with hr.Session(graph=graph) as session:
        values = dict(zip(constants, session.run(constants), strict=True))
    made = without(message, ())
    nodes = {node.name: node for node in made.node}
    orphans: set[str] = set()
    for chain in chains:
        orphans |= _fold(made, nodes, chain, values)
    return _pruned(made, orphans)


def _chains(graph: Graph, kept: set[str]) -> list[_Chain]:
    """Return what can be folded."""
    constant = _constants(graph)
    users: dict[Tensor, list[Operation]] = {}
    waited_for: set[Operation] = set()
    for op in graph.operations:
        waited_for.update(op.control_inputs)
        for tensor in op.inputs:
            users.setdefault(tensor, []).append(op)
    found = []
    for op in graph.operations:
        channels = _channels(op)
        if channels is None or op.inputs[1] not in constant or op.inputs[0] in constant:
            continue
        chain = _Chain(op, op.inputs[1], [])
        current, last = op.outputs[0], 0
        while current.op.name not in kept and current.op not in waited_for:
            if len(users.get(current, ())) != 1:
                break
            (user,) = users[current]
            other = _constant_of(user, current, constant, channels)
            if other is None:
                break
            chain.steps.append((user, other))
            current = user.outputs[0]
            last = len(chain.steps)
        if any(step.type in ("Mul", "Div") for step, _ in chain.steps[:last]):
            found.append(chain)
    return found


def _constants(graph: Graph) -> set[Tensor]:
    """Return the tensors that follow from constants alone."""
    stateful = {op for f in functions_in(graph) if f.stateful for op in f.operations}
    found: set[Tensor] = set()
    for op in graph.operations:
        plain = not op.stateful and not op.schema.effects and op not in stateful
        known = op.type == "Const" or (bool(op.inputs) and all(t in found for t in op.inputs))
        if plain and known and not op.control_inputs:
            found.update(op.outputs)
    return found


def _channels(op: Operation) -> int | None:
    """Return how many channels a product yields, None where it is none that can be folded."""
    if op.type != "MatMul" and not (op.type == "Conv2D" and op.attrs["data_format"] == "NHWC"):
        return None
    shape = op.outputs[0].spec.shape
    if shape.dims is None or not op.inputs[1].spec.shape.is_fully_defined():
        return None
    found: int | None = shape.dims[-1]
    return found


def _constant_of(
    user: Operation, current: Tensor, constant: set[Tensor], channels: int
) -> Tensor | None:
    """Return the constant with which an operation scales or shifts channels, None where none."""
    commutes = user.type in ("Add", "Mul")
    if user.control_inputs or not (commutes or user.type in ("Sub", "Div")):
        return None
    first, second = user.inputs
    if second is current and first is not current and user.type != "Div":
        # A constant minus the product turns its sign.
        other = first
    elif first is current and second is not current:
        other = second
    else:
        return None
    if other not in constant or not other.spec.shape.is_fully_defined():
        return None
    shape = other.spec.shape.known
    rank = current.spec.shape.rank or 0
    fits = len(shape) <= rank and all(size == 1 for size in shape[:-1])
    return other if fits and (not shape or shape[-1] in (1, channels)) else None


def _fold(
    message: Any, nodes: dict[str, Any], chain: _Chain, values: dict[Tensor, _Array]
) -> set[str]:
    """Fold a chain, and return the names of the nodes that are not needed any more."""
    product = chain.product
    weights = values[chain.weights]
    transposed = product.type == "MatMul" and product.attrs["transpose_b"]
    channels = weights.shape[0] if transposed else weights.shape[-1]
    scale, shift = np.ones(channels), np.zeros(channels)
    current = product.outputs[0]
    for step, tensor in chain.steps:
        value = np.asarray(values[tensor], np.float64).reshape(-1)
        if step.type == "Mul":
            scale, shift = scale * value, shift * value
        elif step.type == "Div":
            scale, shift = scale / value, shift / value
        elif step.type == "Add":
            shift = shift + value
        elif step.inputs[0] is current:
            shift = shift - value
        else:
            scale, shift = -scale, value - shift
        current = step.outputs[0]
    along = scale[:, None] if transposed else scale
    folded = (weights.astype(np.float64) * along).astype(weights.dtype)
    last = nodes[chain.steps[-1][0].name]
    first = nodes[product.name]
    new_weights = _add_constant(message, f"{product.name}/folded", folded, nodes)
    new_shift = _add_constant(message, f"{product.name}/shift", shift.astype(weights.dtype), nodes)
    orphans = {node_name(first.input[1])}
    first.input[1] = new_weights
    for step, _ in chain.steps:
        orphans |= {node_name(text) for text in nodes[step.name].input}
    last.op = "Add"
    del last.input[:]
    last.input.extend([product.name, new_shift])
    for name in list(last.attr):
        if name not in ("T", "_class", "_output_shapes"):
            del last.attr[name]
    return orphans - {product.name}


def _add_constant(message: Any, name: str, value: _Array, nodes: dict[str, Any]) -> str:
    unique, number = name, 0
    while unique in nodes:
        number += 1
        unique = f"{name}_{number}"
    node = message.node.add(name=unique, op="Const")
    node.attr["dtype"].type = number_of(hr.as_dtype(value.dtype))
    node.attr["value"].tensor.CopyFrom(make_tensor_proto(value))
    nodes[unique] = node
    return unique


def _pruned(message: Any, orphans: set[str]) -> Any:
    """Leave out nodes that nothing takes any more, and then those that only these took."""
    inputs = {node.name: {node_name(text) for text in node.input} for node in message.node}
    users: dict[str, set[str]] = {name: set() for name in inputs}
    for name, taken in inputs.items():
        for other in taken:
            users[other].add(name)
    gone: set[str] = set()
    waiting = list(orphans)
    while waiting:
        name = waiting.pop()
        if name not in gone and not users[name]:
            gone.add(name)
            for other in inputs[name]:
                users[other].discard(name)
                waiting.append(other)
    return without(message, gone)
