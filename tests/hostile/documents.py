"""Graph documents and serialized graphs: changed ones, and ones made by a grammar of strangers."""

from __future__ import annotations

import base64
import copy
import functools
import json
import random
from typing import Any

import numpy as np

import headrace as hr
from headrace.documents.document import dump, load
from headrace.errors import MAX_LINES
from headrace.graph.schema import OPS, REQUIRED
from headrace.plugins.host import host

from .campaign import Campaign, WrongResultError, mutated

_SIZES = (0, 1, 2, 3, 7, -1, -2, None, 2**16, 2**31 - 1, 2**31, 2**62, 2**63, 10**18)
_JUNK: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**63, -(2**63), 10**400, 0.5, "", "x", "x:0", "a:b:0"),
    *([], {}, [[]], [None], {"shape": None}, {"shape": [2, None]}, {"float": "nan"}),
    *({"dtype": "float64"}, {"dtype": "string"}, {"dtype": "resource"}, {"dtype": "nope"}),
)
_DTYPES = (
    "float32",
    "float64",
    "int32",
    "int64",
    "bool",
    "string",
    "uint8",
    "complex64",
    "bfloat16",
)


def build() -> hr.Graph:
    """Return a graph with something of everything that documents hold."""
    with hr.Graph().as_default() as graph:
        hr.set_random_seed(1)
        x = hr.placeholder(hr.float32, [None, 6, 6, 2], name="x")
        kernel = hr.Variable(hr.random_normal([3, 3, 2, 4]), name="kernel")
        with hr.device("/cpu:0"), hr.colocate_with(kernel):
            hidden = hr.nn.conv2d(x, kernel, [1, 1, 1, 1], "SAME")
        flat = hr.reshape(hr.nn.max_pool(hidden, [1, 2, 2, 1], [1, 2, 2, 1], "VALID"), [-1, 36])
        with hr.control_dependencies([kernel.assign_add(kernel)]):
            hr.reduce_mean(flat[1:, ..., None], axis=[0], keepdims=True)
        hr.unstack(hr.one_hot(hr.argmax(flat, 1), 3), axis=1)
        hr.pad(flat, [[1, 1], [0, 2]])
        hr.concat([hr.range(0, 5), hr.tile(hr.constant([1]), [3])], 0)
        scale = hr.constant(0.5, name="scale")
        twice = hr.function(lambda value: value * scale, name="twice")
        hr.while_loop(
            lambda i, a: i < 3,
            lambda i, a: (i + 1, hr.cond(a > 1.0, lambda: twice(a), lambda: a + 1.0)),
            (0, scale),
        )
    return graph


@functools.cache
def _document() -> str:
    return dump(build())


@functools.cache
def _data() -> Any:
    return json.loads(_document())


@functools.cache
def _places() -> list[tuple[Any, ...]]:
    found = []

    def visit(value: Any, here: tuple[Any, ...]) -> None:
        if here:
            found.append(here)
        if isinstance(value, dict | list):
            items = value.items() if isinstance(value, dict) else enumerate(value)
            for key, inner in items:
                visit(inner, (*here, key))

    visit(_data(), ())
    return found


def _at(data: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        data = data[key]
    return data


def _changed(draw: random.Random) -> str:
    data = copy.deepcopy(_data())
    for _ in range(draw.randint(1, 4)):
        *parents, key = draw.choice(_places())
        try:
            parent = _at(data, tuple(parents))
            value = parent[key]
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took it away
        if isinstance(parent, str):
            continue
        match draw.randrange(6):
            case 0 | 1:
                parent[key] = draw.choice(_JUNK)
            case 2:
                parent[key] = copy.deepcopy(_at(_data(), draw.choice(_places())))
            case 3:
                del parent[key]
            case 4 if isinstance(value, int) and not isinstance(value, bool):
                parent[key] = draw.choice(_SIZES)
            case _ if isinstance(parent, list):
                parent.insert(key, copy.deepcopy(value))
    return json.dumps(data)


def _check(document: str | bytes) -> None:
    graph = load(document)
    again = dump(graph)
    if dump(load(again)) != again:
        raise WrongResultError(f"a graph is another one when it is read again: {again[:200]}")


def changed_values(draw: random.Random, number: int) -> None:
    """Read a document of which values were exchanged."""
    _check(_changed(draw))


def changed_bytes(draw: random.Random, number: int) -> None:
    """Read a document of which bytes were changed."""
    _check(mutated(draw, _document().encode()))


def _array(draw: random.Random) -> dict[str, Any]:
    dtype = draw.choice(("float32", "int32", "int64", "bool", "float64"))
    shape = [draw.choice((0, 1, 2, 3)) for _ in range(draw.randrange(3))]
    if draw.random() < 0.5:
        # What shapes, axes and counts are made of.
        values = np.array([draw.choice([s for s in _SIZES if s is not None]) % 2**63], "int64")
        values = values.astype("int32" if dtype == "int32" else "int64")
        shape, dtype = draw.choice(([1], [])), str(values.dtype)
    else:
        values = np.zeros(shape, dtype)
    data = base64.b64encode(values.tobytes()).decode()
    return {"array": {"dtype": dtype, "shape": shape, "data": data}}


def _attribute(draw: random.Random, hint: str) -> Any:
    if draw.random() < 0.05:
        return draw.choice(_JUNK)
    if "DType" in hint:
        return {"dtype": draw.choice(_DTYPES)}
    if "Shape" in hint:
        shape = {"shape": [draw.choice(_SIZES) for _ in range(draw.randrange(4))]}
        return [shape] if "tuple" in hint else shape
    if "ndarray" in hint:
        return _array(draw)
    if "bool" in hint:
        return draw.random() < 0.5
    if "float" in hint:
        return {"float": draw.choice(("0.0", "1.0", "-1.0", "inf", "nan", "1e300"))}
    if "tuple" in hint:
        return [draw.choice([s for s in _SIZES if s is not None]) for _ in range(draw.randrange(5))]
    if "int" in hint:
        return draw.choice([s for s in _SIZES if s is not None])
    return draw.choice(("", "x", "SAME", "VALID", "NHWC", "NCHW", "a->b", "ij,jk->ik", "é"))


@functools.cache
def _ops() -> list[Any]:
    host().declare_ops()
    return sorted(OPS, key=lambda schema: schema.type)


def made_by_grammar(draw: random.Random, number: int) -> None:
    """Read a document that grows by random operations on one another; their rules run on it."""
    kept = [{"name": "n", "type": "Const", "attrs": {"value": _array(draw)}}]
    outputs = ["n:0"]
    refusal = None
    for i in range(draw.randint(2, 12)):
        record = _operation(draw, f"n{i}", outputs)
        grown = {**_data(), "operations": [*kept, record], "variables": [], "functions": []}
        try:
            _check(json.dumps(grown))
        except hr.errors.DocumentError as error:
            refusal = error
            if len(str(error).splitlines()) > MAX_LINES:
                raise
        else:
            kept.append(record)
            outputs.append(f"n{i}:0")
    if len(kept) == 1 and refusal is not None:
        raise refusal


def _operation(draw: random.Random, name: str, outputs: list[str]) -> dict[str, Any]:
    if draw.random() < 0.3:
        return {"name": name, "type": "Const", "attrs": {"value": _array(draw)}}
    schema = draw.choice(_ops())
    inputs: list[str] = []
    arity: list[int] = []
    for parameter in schema.inputs:
        if parameter.variadic:
            count = draw.randrange(4)
            arity.append(count)
        else:
            count = 0 if parameter.optional and draw.random() < 0.5 else 1
        inputs += draw.choices(outputs, k=count)
    attrs = {
        a.name: _attribute(draw, str(a.hint))
        for a in schema.attrs
        if a.default is REQUIRED or draw.random() < 0.7
    }
    record = {"name": name, "type": schema.type, "inputs": inputs, "attrs": attrs}
    return {**record, "arity": arity} if arity else record


@functools.cache
def _graph_def() -> bytes:
    with hr.Graph().as_default() as graph:
        x = hr.placeholder(hr.float32, [None, 4], name="x")
        w = hr.constant(np.ones((4, 3), np.float32), name="w")
        y = hr.nn.softmax(hr.matmul(x, w) + hr.constant([0.5, 1.0, 2.0]))
        hr.reduce_sum(hr.concat([y, hr.reshape(y, [-1, 3])], 0), axis=[1], name="sum")
        hr.strided_slice(y, [0, 0], [2, 2], [1, 1], name="part")
    return bytes(graph.as_graph_def().SerializeToString())


def changed_messages(draw: random.Random, number: int) -> None:
    """Import a serialized graph of TensorFlow's format of which bytes were changed."""
    with hr.Graph().as_default():
        hr.import_graph_def(mutated(draw, _graph_def()), name="")


def changed_nodes(draw: random.Random, number: int) -> None:
    """Import a graph of which a few nodes were changed."""
    message = hr.GraphDef.FromString(_graph_def())
    for _ in range(draw.randint(1, 3)):
        _change_node(draw, message)
    with hr.Graph().as_default():
        hr.import_graph_def(message, name="")


def _change_node(draw: random.Random, message: Any) -> None:
    node = draw.choice(message.node)
    match draw.randrange(8):
        case 0:
            node.op = draw.choice(_ops()).type
        case 1:
            node.name = draw.choice(("x", "", "a/b", "^", "w", "x:0", "a" * 1000))
        case 2:
            node.input.append(draw.choice(("x", "^x", "w:1", node.name, ":", "w:-1", "")))
        case 3 if node.input:
            del node.input[draw.randrange(len(node.input))]
        case 4:
            node.device = draw.choice(("/cpu:0", "/job:", "over there", "/gpu:9", ""))
        case 5:
            message.node.add().CopyFrom(node)
        case _:
            known = sorted(node.attr) or ["T"]
            _change_attribute(draw, node.attr[draw.choice((*known, "T", "shape", "nonsense"))])


def _change_attribute(draw: random.Random, value: Any) -> None:
    match draw.randrange(6):
        case 0:
            value.i = draw.choice((0, 1, -1, 2**31, 2**63 - 1))
        case 1:
            value.type = draw.choice((0, 1, 3, 9, 7, 10, 20, 101))
        case 2:
            for _ in range(draw.randrange(4)):
                value.shape.dim.add().size = draw.choice((0, 1, 3, -1, 2**31, 2**62))
        case 3:
            value.tensor.dtype = draw.choice((1, 3, 9, 7, 10))
            for _ in range(draw.randrange(3)):
                value.tensor.tensor_shape.dim.add().size = draw.choice((0, 1, 2, 2**40))
            value.tensor.tensor_content = draw.randbytes(draw.choice((0, 4, 8, 16)))
        case 4:
            value.s = draw.choice((b"", b"SAME", b"\xff", b"NHWC"))
        case _:
            value.list.i.extend([draw.choice((0, 1, -1, 2**40))] * draw.randrange(3))


CAMPAIGNS = (
    Campaign("document-values", "documents with exchanged values", 40_000, changed_values),
    Campaign("document-bytes", "documents with changed bytes", 20_000, changed_bytes),
    Campaign("document-grammar", "documents of random operations", 30_000, made_by_grammar),
    Campaign("graph-def-bytes", "serialized graphs with changed bytes", 10_000, changed_messages),
    Campaign("graph-def-nodes", "messages of graphs with changed nodes", 10_000, changed_nodes),
)
