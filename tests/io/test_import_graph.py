"""Graphs from messages: what Headrace wrote comes back as it was, and what is wrong is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

import headrace as hr
from headrace import errors

pytestmark = pytest.mark.needs("backend-cpu", "autodiff", "train")


def build() -> hr.Graph:
    """A graph with functions, variables, updates and attributes of all kinds."""
    graph = hr.Graph()
    with graph.as_default():
        x = hr.placeholder(hr.float32, [None, 3], name="x")
        w = hr.Variable(np.arange(6, dtype=np.float32).reshape(3, 2), name="w")
        y = hr.matmul(x, w)
        z = hr.cond(hr.reduce_sum(y) > 0, lambda: y * 2, lambda: y - w[0], name="z")
        _, o = hr.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a + w[0] / 3), [0, z])
        o = hr.identity(o, name="o")
        parts = hr.concat(hr.split(o, 2, axis=1), 0)
        hr.nn.leaky_relu(parts[:, None, ..., 0:1], 1 / 3)
        hr.pad(parts, [[1, 1], [0, 0]], constant_values=float("inf"))
        hr.random_uniform([2], seed=3)
        hr.constant(["a", b"\xff"])
        hr.print(o, end="|")
        with hr.device("/device:cpu:0"), hr.control_dependencies([o]):
            hr.no_op(name="late")
        with graph.gradient_override_map({"Square": "Other"}):
            loss = hr.reduce_mean(hr.square(hr.identity(o)), name="loss")
        hr.train.AdamOptimizer(0.1).minimize(hr.reduce_sum(o))
        hr.identity(loss, name="end")
    return graph


@pytest.fixture(scope="module")
def graph() -> hr.Graph:
    return build()


def operations(graph: hr.Graph) -> list[object]:
    data = json.loads(graph.to_document())
    for function in data["functions"]:
        for operation in function["operations"]:
            # Why a rewrite made it is not written.
            operation.pop("origin", None)
    return [data["operations"], *(sorted(map(str, f["operations"])) for f in data["functions"])]


def test_a_graph_comes_back_as_it_was(graph: hr.Graph) -> None:
    message = graph.as_graph_def(add_shapes=True)
    read = hr.io.read_graph_def(hr.GraphDef.FromString(message.SerializeToString()))
    assert operations(read) == operations(graph)
    assert read.as_graph_def(add_shapes=True) == message


def test_nodes_may_stand_in_any_order(graph: hr.Graph) -> None:
    message = graph.as_graph_def()
    turned = hr.GraphDef(versions=message.versions, library=message.library)
    for node in reversed(message.node):
        turned.node.add().CopyFrom(node)
    read = hr.io.read_graph_def(turned)
    assert {op.name: op.type for op in read.operations} == {
        op.name: op.type for op in graph.operations
    }


def test_an_imported_graph_computes_the_same(graph: hr.Graph) -> None:
    feeds = np.array([[1, 2, 3], [-1, 0, 1]], np.float32)
    with hr.Session(graph=graph) as session:
        session.run("w/Assign")
        expected = session.run("o:0", {"x:0": feeds})
    with hr.Graph().as_default(), hr.Session() as session:
        elements = hr.import_graph_def(
            graph.as_graph_def(), return_elements=["o:0", "w/Assign", "x:0", "late"]
        )
        found, initializer, x, late = elements
        assert (found.name, late.name) == ("import/o:0", "import/late")
        session.run(initializer)
        np.testing.assert_array_equal(session.run(found, {x: feeds}), expected)


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [(None, "import/x", "import_1/x"), ("a/b", "a/b/x", "a/b_1/x"), ("", "x", "x_1")],
)
def test_names_are_those_of_tensorflow(name: str | None, first: str, second: str) -> None:
    with hr.Graph().as_default():
        hr.placeholder(hr.float32, [2], name="x")
        message = hr.get_default_graph().as_graph_def()
    with hr.Graph().as_default() as target:
        for _ in range(2):
            assert hr.import_graph_def(message, name=name) is None
        assert [op.name for op in target.operations] == [first, second]


def test_tensors_of_the_program_take_the_places_of_inputs(graph: hr.Graph) -> None:
    with hr.Graph().as_default(), hr.Session() as session:
        x = hr.constant([[1.0, 2.0, 3.0]])
        ready = hr.no_op(name="ready")
        found, feed = hr.import_graph_def(
            graph.as_graph_def(),
            {"x": x, "w/read": np.zeros((3, 2), np.float32), "^o": ready},
            ["MatMul:0", "x:0"],
        )
        assert found.shape.as_list() == [1, 2]
        assert feed is x
        session.run("import/w/Assign")
        np.testing.assert_array_equal(found.eval(session=session), [[16, 22]])
        late = hr.get_default_graph().get_operation_by_name("import/late")
        assert late.control_inputs == (ready,)


def broken(change) -> hr.GraphDef:
    with hr.Graph().as_default() as graph:
        x = hr.placeholder(hr.float32, [2], name="x")
        hr.transpose(hr.add(x, 1.0, name="y"), [0], name="t")
        hr.cond(x[0] > 0, lambda: x, lambda: x + 1, name="c")
        message = graph.as_graph_def()
    change(message, {node.name: node for node in message.node})
    return message


REFUSED = {
    "unknown ops": (
        lambda m, n: (setattr(n["t"], "op", "Nope"), setattr(n["y"], "op", "Nono")),
        errors.NotFoundError,
        r"2 types that Headrace does not have: Nono \('y'\), Nope \('t'\)",
    ),
    "unknown input": (
        lambda m, n: n["y"].input.__setitem__(0, "none"),
        ValueError,
        "node 'y' has the unknown input 'none'",
    ),
    "cycle": (lambda m, n: n["y"].input.__setitem__(0, "t"), ValueError, "in a cycle, as"),
    "no output": (
        lambda m, n: n["t"].input.__setitem__(0, "y:3"),
        ValueError,
        "'y' has 1 outputs, there is no 'y:3'",
    ),
    "no name": (lambda m, n: n["t"].input.__setitem__(0, "a:b:c:d"), ValueError, "is no input of"),
    "twice": (lambda m, n: m.node.add().CopyFrom(n["t"]), ValueError, "two nodes have the name"),
    "inputs": (lambda m, n: n["t"].input.append("y"), ValueError, "it takes a, got 2 inputs"),
    "attribute": (
        lambda m, n: n["t"].attr["other"].__setattr__("i", 3),
        ValueError,
        "its op has no attributes 'other'",
    ),
    "kind": (
        lambda m, n: n["t"].attr["perm"].__setattr__("b", True),
        ValueError,
        "the attribute 'perm' cannot be True",
    ),
    "missing": (
        lambda m, n: n["x"].attr.__delitem__("shape") or n["t"].attr.__delitem__("perm"),
        ValueError,
        "Transpose 't'|attribute",
    ),
    "shape": (
        lambda m, n: n["t"].attr["perm"].list.i.append(1),
        ValueError,
        "Transpose 't'",
    ),
    "dtype": (
        lambda m, n: n["x"].attr["dtype"].__setattr__("type", 99),
        errors.InvalidArgumentError,
        "no dtype has the number 99",
    ),
    "device": (
        lambda m, n: setattr(n["t"], "device", "/device:cpu:x"),
        ValueError,
        "Transpose 't'",
    ),
    "no function": (lambda m, n: m.library.Clear(), ValueError, "no function 'c/"),
    "foreign function": (
        lambda m, n: m.library.function[0].attr.__delitem__("_parameters"),
        ValueError,
        "does not say what its arguments are",
    ),
    "recursion": (
        lambda m, n: [
            f.node_def.add(name="again", op="Call")
            .attr["function"]
            .func.__setattr__("name", f.signature.name)
            for f in m.library.function
        ],
        ValueError,
        "holds itself",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_refused_and_nothing_is_added(case: str) -> None:
    change, kind, message = REFUSED[case]
    with hr.Graph().as_default() as target:
        with pytest.raises(kind, match=message):
            hr.import_graph_def(broken(change))
        assert len(target) == 0


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"graph_def": 3}, TypeError, "graph_def must be a GraphDef, got int"),
        ({"graph_def": b"\xff"}, TypeError, "is no serialized GraphDef"),
        ({"input_map": []}, TypeError, "input_map must be a dict"),
        ({"input_map": {3: 1.0}}, TypeError, "keys of input_map are names"),
        ({"input_map": {"q:0": 1.0, "r": 1.0}}, ValueError, "graph_def has no 'q:0', 'r'"),
        ({"input_map": {"x:0": 1}}, ValueError, r"of int32 for 'x:0' of float32"),
        ({"input_map": {"^x": 3}}, TypeError, r"input_map gives 3 for '\^x'"),
        ({"return_elements": ["none"]}, ValueError, "no operation 'none'"),
        ({"return_elements": ["x:7"]}, ValueError, "there is no 'x:7'"),
        ({"return_elements": [3]}, TypeError, "must be a list of names"),
        ({"return_elements": "x"}, TypeError, "must be a list of names"),
    ],
    ids=range(11),
)
def test_arguments_are_checked(arguments: dict, kind: type, message: str) -> None:
    given = {"graph_def": broken(lambda m, n: None), **arguments}
    with hr.Graph().as_default(), pytest.raises(kind, match=message):
        hr.import_graph_def(**given)


def test_the_outputs_of_all_nodes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.documents.reader._MOST_OUTPUTS", 200)

    def wide(sizes: list[int]) -> bytes:
        with hr.Graph().as_default() as graph:
            for size in sizes:
                hr.dynamic_partition(hr.constant([1.0, 2.0]), hr.constant([0, 1]), size)
        return graph.as_graph_def()

    with hr.Graph().as_default() as graph:
        hr.import_graph_def(wide([100, 100]))
        before = len(graph.operations)
        with pytest.raises(errors.AttributeValueError, match="more than 200 in all"):
            hr.import_graph_def(wide([100, 100, 65]))
        assert len(graph.operations) == before
