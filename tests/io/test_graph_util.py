"""Changes of written graphs: what is left out, frozen and folded."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace import errors

pytestmark = pytest.mark.needs("backend-cpu", "autodiff", "train")

WEIGHTS = np.random.default_rng(0)
IMAGES = np.random.default_rng(1).normal(size=(2, 8, 8, 3)).astype(np.float32)


def frozen(build, dtype=hr.float32) -> tuple[hr.GraphDef, np.ndarray]:
    """Return a graph with constants for random variables, and what it computes."""
    with hr.Graph().as_default() as graph, hr.Session() as session:
        x = hr.placeholder(dtype, [None, 8, 8, 3], name="x")
        hr.identity(build(x), name="out")
        for v in hr.global_variables():
            v.load(WEIGHTS.uniform(0.2, 2, v.shape.as_list()), session)
        expected = session.run("out:0", {x: IMAGES})
        message = graph.as_graph_def()
        return hr.graph_util.convert_variables_to_constants(session, message, ["out"]), expected


def computed(message: hr.GraphDef) -> np.ndarray:
    with hr.Graph().as_default(), hr.Session() as session:
        (out,) = hr.import_graph_def(message, return_elements=["out:0"])
        return session.run(out, {"import/x:0": IMAGES})


def types(message: hr.GraphDef) -> list[str]:
    return [node.op for node in message.node]


def conv_bn(x: hr.Tensor) -> hr.Tensor:
    h = hr.layers.conv2d(x, 4, 3)
    return hr.nn.relu(hr.layers.batch_normalization(h))


def dense_bn(x: hr.Tensor) -> hr.Tensor:
    return hr.layers.batch_normalization(hr.layers.dense(hr.layers.flatten(x), 5))


def depthwise_bn(x: hr.Tensor) -> hr.Tensor:
    h = hr.nn.depthwise_conv2d(x, hr.get_variable("w", [3, 3, 3, 2]), [1, 1, 1, 1], "SAME")
    return hr.layers.batch_normalization(h, fused=False)


def separable_bn(x: hr.Tensor) -> hr.Tensor:
    return hr.layers.batch_normalization(hr.layers.separable_conv2d(x, 4, 3))


def transposed(x: hr.Tensor) -> hr.Tensor:
    w = hr.get_variable("w", [5, 192])
    product = hr.matmul(hr.layers.flatten(x), w, transpose_b=True)
    return hr.subtract(1.0, product) / hr.get_variable("s", [5])


FOLDED = {
    "conv": (conv_bn, 1e-5),
    "dense": (dense_bn, 1e-5),
    "depthwise": (depthwise_bn, 1e-5),
    "separable": (separable_bn, 1e-5),
    "transposed": (transposed, 1e-5),
}


@pytest.mark.parametrize("case", FOLDED)
def test_scaling_is_folded_into_weights(case: str) -> None:
    build, tolerance = FOLDED[case]
    message, expected = frozen(build)
    folded = hr.graph_util.fold_batch_norms(message)
    scaling = {"Mul", "Div", "Sub", "Rsqrt"}
    assert scaling & set(types(message))
    assert not scaling & set(types(folded))
    np.testing.assert_array_equal(computed(message), expected)
    np.testing.assert_allclose(computed(folded), expected, rtol=tolerance, atol=1e-4)


NOT_FOLDED = {
    "used twice": lambda x: (lambda h: h * 2.0 + h)(hr.layers.conv2d(x, 4, 3, use_bias=False)),
    "not constant": lambda x: hr.layers.conv2d(x, 4, 3) * hr.reduce_mean(x),
    "not by channel": lambda x: hr.layers.conv2d(x, 4, 3, use_bias=False) * np.ones((6, 6, 4)),
    "divided by it": lambda x: 1.0 / (hr.layers.conv2d(x, 4, 3, use_bias=False)),
    "shift only": lambda x: hr.layers.conv2d(x, 4, 3),
}


@pytest.mark.parametrize("case", NOT_FOLDED)
def test_what_cannot_be_folded_stays(case: str) -> None:
    message, expected = frozen(NOT_FOLDED[case])
    folded = hr.graph_util.fold_batch_norms(message)
    assert sorted(types(folded)) == sorted(types(message))
    np.testing.assert_array_equal(computed(folded), expected)


def test_protected_nodes_are_not_folded() -> None:
    message, expected = frozen(conv_bn)
    (conv,) = [node.name for node in message.node if node.op == "Conv2D"]
    folded = hr.graph_util.fold_batch_norms(message, [conv])
    assert "Mul" in types(folded)
    np.testing.assert_array_equal(computed(folded), expected)


def test_variables_are_frozen_inside_of_functions() -> None:
    with hr.Graph().as_default() as graph, hr.Session() as session:
        x = hr.placeholder(hr.float32, [2], name="x")
        w = hr.get_variable("w", [2])
        b = hr.get_variable("b", [2])

        def body(i, a):
            return i + 1, a + hr.cond(i > 1, lambda: w.read_value(), lambda: b * 2.0)

        _, y = hr.while_loop(lambda i, a: i < hr.size(w.read_value()) * 2, body, [0, x])
        hr.identity(y, name="out")
        hr.train.GradientDescentOptimizer(0.1).minimize(hr.reduce_sum(y), name="train")
        w.load([1, 2], session)
        b.load([3, 4], session)
        expected = session.run("out:0", {x: [1, 1]})
        convert = hr.graph_util.convert_variables_to_constants
        message = convert(session, graph.as_graph_def(), ["out"])
        partly = convert(session, graph.as_graph_def(), ["out"], ["w", "b"], ["b"])
        whole = convert(session, graph, ["out"])
        with pytest.raises(errors.GraphError, match=r"variable '[bw]' than read it"):
            convert(session, graph.as_graph_def(), ["train"])
        with pytest.raises(AssertionError, match="the graph has no 'none'"):
            convert(session, graph.as_graph_def(), ["none"])
        with pytest.raises(TypeError, match="must be a list of names"):
            convert(session, graph.as_graph_def(), "out")
    assert isinstance(whole, hr.Graph)
    for definition in (message, whole.as_graph_def()):
        every = [*definition.node, *(n for f in definition.library.function for n in f.node_def)]
        assert not [node.op for node in every if "Var" in node.op]
        with hr.Graph().as_default(), hr.Session() as session:
            hr.import_graph_def(definition, name="")
            np.testing.assert_array_equal(session.run("out:0", {"x:0": [1, 1]}), expected)
    assert [node.name for node in partly.node if node.op == "VarHandle"] == ["b"]
    with hr.Graph().as_default(), hr.Session() as session:
        hr.import_graph_def(partly, name="")
        # The container knows it by its name.
        session.run(hr.Variable([3.0, 4.0], shared_name="b").initializer)
        np.testing.assert_array_equal(session.run("out:0", {"x:0": [1, 1]}), expected)


def test_a_variable_without_a_value_cannot_be_frozen() -> None:
    with hr.Graph().as_default() as graph, hr.Session() as session:
        hr.get_variable("w", [2])
        with pytest.raises(errors.FailedPreconditionError, match="w"):
            hr.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ["w/read"])


def test_what_nodes_need_is_extracted() -> None:
    with hr.Graph().as_default() as graph:
        a = hr.constant(1.0, name="a")
        b = hr.constant(2.0, name="b")
        hr.add(a, b, name="c")
        with hr.control_dependencies([b.op]):
            hr.identity(a, name="d")
        with hr.colocate_with(b.op):
            hr.constant(3.0, name="e")
    extract = hr.graph_util.extract_sub_graph
    message = graph.as_graph_def()
    for wanted, expected in (
        (["c"], ["a", "b", "c"]),
        (["d"], ["a", "b", "d"]),
        (["e"], ["b", "e"]),
        (["b", "a"], ["a", "b"]),
        ([], []),
    ):
        assert [node.name for node in extract(message, wanted).node] == expected
    assert [op.name for op in extract(graph, ["c"]).operations] == ["a", "b", "c"]
    for wrong, kind, text in (
        ((message, "c"), TypeError, "dest_nodes must be a list"),
        ((3, ["c"]), TypeError, "graph_def must be a GraphDef"),
        ((message, ["c", "no", "none"]), AssertionError, "the graph has no 'no', 'none'"),
    ):
        with pytest.raises(kind, match=text):
            extract(*wrong)


def test_training_nodes_are_removed() -> None:
    with hr.Graph().as_default() as graph:
        a = hr.constant([1.0, 2.0], name="a")
        b = hr.identity(a, name="b")
        c = hr.check_numerics(hr.identity(b, name="b2"), "message", name="c")
        with hr.control_dependencies([c]):
            d = hr.identity(b, name="d")
        e = hr.identity(d, name="e")
        with hr.control_dependencies([e.op]):
            hr.add(c, b, name="f")
        with hr.colocate_with(b.op):
            hr.identity(hr.constant(1.0, name="g"), name="out")
    remove = hr.graph_util.remove_training_nodes
    left = {node.name: list(node.input) for node in remove(graph.as_graph_def(), ["out"]).node}
    assert left == {"a": [], "e": ["a"], "f": ["a", "a", "^e"], "g": [], "out": ["g"]}
    assert "out" not in [node.name for node in remove(graph.as_graph_def()).node]
    assert remove(graph, ["out"]).get_operation_by_name("f").inputs[0].op.name == "a"
    with pytest.raises(TypeError, match="graph_def must be a GraphDef"):
        remove(3)


def test_where_nodes_must_run() -> None:
    must = hr.graph_util.must_run_on_cpu
    with hr.Graph().as_default() as graph:
        whole, text, real = hr.constant(1), hr.constant("a"), hr.constant(1.0)
        v = hr.get_variable("v", [])
        drawn = hr.truncated_normal([2])
        stitch = [hr.dynamic_stitch([[0]], [[value]]) for value in (whole, real)]
        cast = [hr.cast(value, hr.float64) for value in (whole, real)]
        for tensor, expected in (
            (whole, True),
            (text, True),
            (real, False),
            (stitch[0], True),
            (stitch[1], False),
            (cast[0], True),
            (cast[1], False),
            (drawn, False),
            (v.handle, False),
        ):
            assert must(tensor.op) == must(tensor.op.node_def) == expected
        assert must(v.op, True)
        assert must(v.initializer, pin_variables_on_cpu=True)
        assert must(hr.NodeDef(op="TruncatedNormal"), True)
        assert not must(real.op, True)
        with pytest.raises(TypeError, match="must be an Operation or a NodeDef"):
            must(3)
        shape = hr.graph_util.tensor_shape_from_node_def_name
        assert shape(graph, v.snapshot.op.name).as_list() == []
        assert shape(graph, drawn.name).as_list() == [2]
        with pytest.raises(errors.GraphError, match="no operation 'none'"):
            shape(graph, "none")
