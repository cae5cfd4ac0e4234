"""Graphs: names, scopes, creation sites, and what they refuse."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

import headrace as hr
from headrace.errors import ArgumentTypeError, GraphError, PlacementError


def test_names_are_unique_and_scoped():
    a = hr.constant(1.0, name="a")
    b = hr.constant(2.0, name="a")
    with hr.name_scope("layer") as scope:
        c = hr.add(a, b, name="sum")
    with hr.name_scope("layer"):
        d = hr.add(a, b, name="sum")
    with hr.name_scope(scope):
        e = hr.add(a, b, name="sum")
    assert [t.op.name for t in (a, b, c, d, e)] == [
        "a",
        "a_1",
        "layer/sum",
        "layer_1/sum",
        "layer/sum_1",
    ]
    assert scope == "layer/"


@pytest.mark.parametrize("name", [None, ""])
def test_name_scopes_can_be_left(name):
    with hr.name_scope("outer"), hr.name_scope(name) as scope:
        assert scope == ""
        assert hr.no_op(name="free").name == "free"


def test_same_program_gives_same_names():
    def build():
        with hr.Graph().as_default() as graph:
            v = hr.Variable([1.0], name="v")
            _ = (v + 1.0) * v
            return [op.name for op in graph.operations]

    assert build() == build()


def test_lookup_by_name(graph):
    x = hr.constant([1.0, 2.0], name="x")
    assert graph.get_tensor_by_name("x:0") is x
    assert graph.get_operation_by_name("x") is x.op
    assert graph.as_graph_element("x:0") is x
    with pytest.raises(GraphError, match=r"no operation 'y'"):
        graph.get_operation_by_name("y")
    with pytest.raises(GraphError, match=r"has 1 outputs, there is no 'x:1'"):
        graph.get_tensor_by_name("x:1")
    with pytest.raises(GraphError, match="did you mean 'x'"):
        graph.get_operation_by_name("xx")
    with pytest.raises(GraphError, match="named 'operation:index'"):
        graph.get_tensor_by_name("x")


def test_creation_site_is_the_users_line():
    x = hr.constant(1.0)
    y = hr.zeros_like(x) + hr.nn.softmax([1.0, 2.0])
    for op in (x.op, y.op, y.op.inputs[0].op):
        assert Path(op.site.filename).name == "test_graph.py"
    assert y.op.site.line == x.op.site.line + 1
    assert "hr.zeros_like(x)" in str(y.op.site)


def test_graphs_do_not_mix():
    x = hr.constant(1.0)
    with hr.Graph().as_default() as other:
        y = hr.constant(1.0)
        for values in [(x, y), (y, x)]:
            with pytest.raises(GraphError, match=r"'Const:0' .* belongs to another graph"):
                hr.add(*values)
    assert len(other.get_operations()) == 1


@pytest.mark.needs("autodiff", "backend-cpu")
def test_an_operation_goes_to_the_graph_of_what_it_takes():
    with hr.Graph().as_default() as g, g.name_scope("a"):
        x, v = hr.constant([1.0, 2.0]), hr.Variable([3.0, 4.0])
    with hr.Graph().as_default() as other, other.name_scope("b"):
        found = [2.0 * x, hr.stack([x, x]), x[0], v + 1.0, v.assign(x), hr.gradients(x * v, x)[0]]
        assert [t.graph for t in found] == [g] * len(found)
    assert not other.get_operations()
    assert found[0].name == "mul:0"
    with hr.Session(graph=g) as session:
        session.run(v.initializer)
        assert session.run(found[0]).tolist() == [2.0, 4.0]


def test_a_function_takes_in_nothing_of_another_graph():
    x = hr.constant(1.0)
    with hr.Graph().as_default():
        yes = hr.placeholder(hr.bool, [])
        with pytest.raises(GraphError, match=r"'Const:0' .* belongs to another graph"):
            hr.cond(yes, lambda: x + 1.0, lambda: 2.0)


def test_default_graph_is_per_thread(graph):
    seen = []
    thread = threading.Thread(target=lambda: seen.append(hr.get_default_graph()))
    thread.start()
    thread.join()
    assert hr.get_default_graph() is graph
    assert seen[0] is not graph


def test_finalized_graph_refuses(graph):
    graph.finalize()
    with pytest.raises(GraphError, match="was finalized"):
        hr.constant(1.0)


def test_control_dependencies():
    first = hr.no_op(name="first")
    second = hr.no_op(name="second")
    with hr.control_dependencies([first]):
        with hr.control_dependencies([second, first]):
            both = hr.no_op()
        with hr.control_dependencies(None):
            free = hr.no_op()
    assert both.control_inputs == (first, second)
    assert free.control_inputs == ()
    with pytest.raises(ArgumentTypeError, match="expected an operation, tensor or variable"):
        hr.control_dependencies([3]).__enter__()


def test_device_scopes_merge():
    with hr.device("/job:ps/task:1"):
        a = hr.constant(1.0)
        with hr.device("/cpu:0"):
            b = hr.constant(1.0)
        with hr.device(None):
            c = hr.constant(1.0)
    assert [t.device for t in (a, b, c)] == ["/job:ps/task:1", "/job:ps/task:1/device:cpu:0", ""]
    with pytest.raises(PlacementError, match="is not a device name"):
        hr.device("/cpu:0:0").__enter__()


def test_colocation():
    v = hr.Variable(1.0)
    with hr.colocate_with(v):
        x = hr.constant(1.0)
    assert x.op.colocated_with == (v.handle.op,)


def test_scopes_end_with_their_graph():
    first = hr.no_op()
    with hr.control_dependencies([first]), hr.name_scope("outer"), hr.Graph().as_default():
        inner = hr.no_op(name="n")
    assert inner.control_inputs == ()
    assert inner.name == "n"


def test_graph_as_context_manager():
    with hr.Graph() as g:
        x = hr.constant(1.0)
        assert hr.get_default_graph() is g
    assert x.graph is g
    assert hr.get_default_graph() is not g


def test_building_from_many_threads(graph):
    def build():
        with graph.as_default():
            for _ in range(200):
                hr.no_op(name="n")

    threads = [threading.Thread(target=build) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(graph) == 1600
    assert len({op.name for op in graph.operations}) == 1600


def test_tensors_refuse_what_needs_a_value():
    x = hr.placeholder(hr.float32, [3])
    with pytest.raises(GraphError, match="has no truth value"):
        bool(x)
    with pytest.raises(GraphError, match="cannot be iterated"):
        list(x)
    with pytest.raises(GraphError, match="NumPy cannot take it"):
        np.asarray(x)


def test_numpy_on_the_left_gives_a_tensor():
    x = hr.placeholder(hr.float32, [3])
    y = np.ones(3) + x
    assert isinstance(y, hr.Tensor)
    assert y.dtype == hr.float32
    assert isinstance(np.float64(2.0) * x, hr.Tensor)


def test_reset_default_graph():
    with pytest.raises(GraphError, match="leave the block"):
        hr.reset_default_graph()


def test_variable_lists():
    a = hr.Variable(1.0, name="a")
    b = hr.Variable(1.0, trainable=False, name="b")
    assert hr.global_variables() == [a, b]
    assert hr.trainable_variables() == [a]
    assert (a.name, a.op_name) == ("a:0", "a")


@pytest.mark.parametrize("name", [np.zeros(2), 3, "a:b"])
def test_name_scopes_refuse_what_is_no_name(name):
    with pytest.raises(GraphError, match="a name is a string"), hr.name_scope(name):
        pass


@pytest.mark.parametrize("name", ["indices", "values", "dense_shape", "shape"])
def test_parts_of_sparse_tensors_stay(name):
    x = hr.SparseTensor([[0]], [1.0], [2])
    with pytest.raises(AttributeError, match="a SparseTensor is immutable"):
        setattr(x, name, None)


def test_variables_have_no_length():
    with pytest.raises(TypeError, match="has no len"):
        len(hr.Variable([1.0]))
    with pytest.raises(TypeError, match=r"has no len\(\) while the graph is built"):
        len(hr.constant([1.0]))
