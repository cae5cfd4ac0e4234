"""The walk: what is connected, what is summed, where nodes go, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError, DTypeError, GraphError, NoGradientError, ShapeError
from headrace.extend import OPS, Floating, Spec, op
from headrace.plugins.host import host
from tests.steps import run_ready

pytestmark = pytest.mark.usefixtures("graph")


@op("GradientlessForTest", public="")
def gradientless(x: Floating) -> Spec:
    """An op for which nobody wrote a rule."""
    return x.with_dtype(x.dtype)


runs = pytest.mark.needs("backend-cpu")


# -- contracts


def test_every_differentiable_op_has_a_rule() -> None:
    assert host().ops_declared
    # Ops that tests declare are not ours.
    ours = [s for s in OPS if s.where.startswith("headrace")]
    missing = [s.type for s in ours if not s.no_gradient and host().gradients.get(s.type) is None]
    assert missing == []


def test_no_rule_stands_for_an_op_without_gradient() -> None:
    ruled = [s.type for s in OPS if s.no_gradient and host().gradients.get(s.type) is not None]
    assert ruled == []
    assert [name for name in host().gradients if OPS.get(name) is None] == []


# -- connection


def test_one_x_gives_a_list_of_one() -> None:
    x = hr.placeholder(hr.float32, [2])
    grads = hr.gradients(x * 2, x)
    assert isinstance(grads, list)
    assert len(grads) == 1


def test_unconnected_gives_none() -> None:
    x, z = hr.placeholder(hr.float32), hr.placeholder(hr.float32)
    v = hr.Variable(1.0)
    assert hr.gradients(x * 2, [z, v]) == [None, None]


@runs
def test_unconnected_gives_zeros_on_demand() -> None:
    x, z = hr.constant([1.0]), hr.constant([[2.0, 3.0]])
    v = hr.Variable([1.0, 2.0, 3.0])
    grads = hr.gradients(x * 2, [z, v, x], unconnected_gradients="zero")
    got = run_ready(grads)
    assert [g.tolist() for g in got] == [[[0, 0]], [0, 0, 0], [2]]


def test_what_lies_behind_x_does_not_count() -> None:
    x = hr.placeholder(hr.float32)
    y = x * 2
    assert hr.gradients(x, y) == [None]


@runs
def test_the_gradient_of_y_by_itself_is_one() -> None:
    x = hr.constant([1.0, 2.0])
    np.testing.assert_array_equal(run_ready(hr.gradients(x, x)[0]), [1, 1])


@runs
def test_an_x_on_the_way_to_another() -> None:
    x = hr.constant(3.0)
    y = x * x
    grads = hr.gradients(y * y + x, [x, y])
    assert run_ready(grads) == [4 * 27 + 1, 18]


def test_integers_and_discrete_ops_carry_no_gradient() -> None:
    x = hr.placeholder(hr.float32, [3])
    n = hr.placeholder(hr.int32, [3])
    assert hr.gradients(hr.cast(hr.cast(x, hr.int32), hr.float32), x) == [None]
    assert hr.gradients(hr.cast(n, hr.float32), n) == [None]
    assert hr.gradients(n * 2, n) == [None]
    assert hr.gradients(hr.floor(x) * hr.cast(x > 0, hr.float32), x) == [None]
    assert hr.gradients(hr.argmax(x), x) == [None]
    assert hr.gradients(hr.ones(hr.shape(x)), x) == [None]
    assert hr.gradients(hr.stop_gradient(x), x) == [None]


@runs
def test_stop_gradient_leaves_other_paths() -> None:
    x = hr.constant(3.0)
    assert run_ready(hr.gradients(x * hr.stop_gradient(x * x), x)) == [9]


@runs
def test_stop_gradients_gives_partial_derivatives() -> None:
    a = hr.constant(2.0)
    b = 3 * a
    total = hr.gradients(a + b, [a, b])
    partial = hr.gradients(a + b, [a, b], stop_gradients=[a, b])
    assert run_ready([total, partial]) == [[4, 1], [1, 1]]
    assert hr.gradients(b * b, a, stop_gradients=b) == [None]


# -- sums


@runs
def test_partials_are_summed() -> None:
    x = hr.constant(2.0)
    ys = [x * float(n) for n in range(1, 8)]
    assert run_ready(hr.gradients(ys, x)) == [28]
    assert run_ready(hr.gradients([ys[0], ys[0]], x)) == [2]


@runs
def test_grad_ys_weigh_the_ys() -> None:
    x = hr.constant([1.0, 2.0])
    y, z = x * x, x * 3
    grads = hr.gradients(y, x, grad_ys=np.array([2, 3], np.float32))
    assert run_ready(grads)[0].tolist() == [4, 12]
    grads = hr.gradients([y, z], x, grad_ys=[hr.constant([1.0, 0.0]), None])
    assert run_ready(grads)[0].tolist() == [5, 3]


@runs
def test_a_deep_chain_needs_no_recursion() -> None:
    x = hr.constant(1.0)
    y = x
    for _ in range(10_000):
        y = hr.identity(y)
    assert run_ready(hr.gradients(y, x)) == [1]


@runs
def test_gradients_of_gradients() -> None:
    x = hr.constant(2.0)
    y = x * x * x * x
    for expected in (32, 48, 48, 24):
        (y,) = hr.gradients(y, x)
        assert run_ready(y) == expected
    assert run_ready(hr.gradients(y, x, unconnected_gradients="zero")) == [0]


# -- rows


@runs
def test_gather_gives_rows() -> None:
    v = hr.Variable(np.arange(8.0).reshape(4, 2))
    rows = hr.gather(v, [1, 3, 1])
    (grad,) = hr.gradients(hr.reduce_sum(rows * rows), v)
    assert isinstance(grad, hr.IndexedSlices)
    values, indices, shape, whole = run_ready(
        [grad.values, grad.indices, grad.dense_shape, hr.convert_to_tensor(grad)]
    )
    assert values.tolist() == [[4, 6], [12, 14], [4, 6]]
    assert indices.tolist() == [1, 3, 1]
    assert shape.tolist() == [4, 2]
    assert whole.tolist() == [[0, 0], [8, 12], [0, 0], [12, 14]]


@runs
def test_sums_of_rows_stay_rows() -> None:
    v = hr.Variable(np.ones((4, 2)))
    wide = hr.constant([2, 2], hr.int64)
    y = hr.reduce_sum(hr.gather(v, [0, 1])) + hr.reduce_sum(hr.gather(v, wide)) * 3
    (grad,) = hr.gradients(y, v)
    assert isinstance(grad, hr.IndexedSlices)
    assert grad.indices.dtype == hr.int64
    assert sorted(run_ready(grad.indices)) == [0, 1, 2, 2]
    assert run_ready(hr.convert_to_tensor(grad)).tolist() == [[1, 1], [1, 1], [6, 6], [0, 0]]


@runs
def test_rows_and_dense_add_up_dense() -> None:
    v = hr.Variable(np.ones((3, 2)))
    (grad,) = hr.gradients(hr.reduce_sum(hr.gather(v, [0, 0])) + hr.reduce_sum(v.value()), v)
    assert isinstance(grad, hr.Tensor)
    assert run_ready(grad).tolist() == [[3, 3], [1, 1], [1, 1]]


@runs
def test_rows_become_dense_where_a_rule_needs_it() -> None:
    v = hr.Variable(np.ones((3, 2)))
    (grad,) = hr.gradients(hr.reduce_sum(hr.gather(v * 2, [1])), v)
    assert isinstance(grad, hr.Tensor)
    assert run_ready(grad).tolist() == [[0, 0], [2, 2], [0, 0]]


# -- variables


@runs
def test_all_reads_of_a_variable_count() -> None:
    v = hr.Variable(3.0)
    y = v * v + v
    assert run_ready(hr.gradients(y, v)) == [7]
    assert run_ready(hr.gradients(y, [v.handle])) == [7]


@runs
def test_one_read_of_a_variable_counts_alone() -> None:
    v = hr.Variable(3.0)
    read = v.value()
    assert run_ready(hr.gradients(read * v, read)) == [3]
    assert run_ready(hr.gradients(v, v)) == [1]


@runs
def test_writes_stop_the_gradient() -> None:
    v = hr.Variable(3.0)
    x = hr.constant(2.0)
    assert hr.gradients(v.assign(x * 2), [x, v]) == [None, None]


# -- nodes


def test_nodes_are_named_after_what_they_differentiate() -> None:
    x = hr.placeholder(hr.float32, [2, 2])
    with hr.name_scope("layer"):
        y = hr.matmul(x, x, name="product")
    (grad,) = hr.gradients(y, x)
    assert grad.op.name.startswith("gradients/")
    names = [op.name for op in hr.get_default_graph().operations]
    assert "gradients/layer/product_grad/MatMul" in names
    (named,) = hr.gradients(y, x, name="slopes")
    assert named.op.name.startswith("slopes/")


def test_nodes_have_the_users_line() -> None:
    x = hr.placeholder(hr.float32, [2])
    y = hr.exp(x)
    before = len(hr.get_default_graph())
    hr.gradients(y, x)  # this line
    made = hr.get_default_graph().operations[before:]
    assert made
    assert {op.site.filename for op in made} == {__file__}
    assert all("# this line" in str(op.site) for op in made)


def test_nodes_follow_the_device_of_their_operation() -> None:
    x = hr.placeholder(hr.float32, [2])
    with hr.device("/cpu:1"):
        h = hr.exp(x)
    y = hr.exp(h)
    with hr.device("/cpu:0"):
        hr.gradients(y, x)
    devices = {
        op.name.split("/")[1]: op.device_name.index
        for op in hr.get_default_graph().operations
        if "_grad/" in op.name
    }
    assert devices == {"Exp_grad": 1, "Exp_1_grad": 0}


def test_nodes_are_colocated_on_demand() -> None:
    x = hr.placeholder(hr.float32, [2])
    y = hr.exp(x)
    (grad,) = hr.gradients(y, x, colocate_gradients_with_ops=True)
    assert grad.op.colocated_with == (y.op,)


@runs
def test_gated_gradients() -> None:
    v, x = hr.Variable([[1.0, 2.0]]), hr.constant([[3.0], [4.0]])
    y = hr.matmul(v, x) + hr.reduce_sum(hr.gather(v, [0]) * v)
    grads = hr.gradients(y, [v, x], gate_gradients=True)
    assert [g.tolist() for g in run_ready([hr.convert_to_tensor(g) for g in grads])] == [
        [[5, 8]],
        [[1], [2]],
    ]
    assert "tuple" in grads[1].op.name


def test_nothing_is_built_for_what_does_not_lead_to_x() -> None:
    x, z = hr.placeholder(hr.float32, [2]), hr.placeholder(hr.float32, [2])
    y = hr.exp(x) + hr.sin(hr.cos(z))
    before = len(hr.get_default_graph())
    hr.gradients(y, x)
    names = [op.name for op in hr.get_default_graph().operations[before:]]
    assert not [n for n in names if "Sin_grad" in n or "Cos_grad" in n]


@runs
def test_documents_hold_gradients() -> None:
    x = hr.placeholder(hr.float32, [None], name="x")
    (grad,) = hr.gradients(hr.reduce_mean(x * x), x)
    text = hr.get_default_graph().to_document()
    loaded = hr.Graph.from_document(text)
    assert loaded.to_document() == text
    with hr.Session(graph=loaded) as session:
        got = session.run(grad.name, {"x:0": [1.0, 3.0]})
    assert got.tolist() == [1, 3]


@runs
def test_a_loaded_graph_differentiates() -> None:
    x = hr.placeholder(hr.float32, [], name="x")
    y = hr.exp(x) * x
    loaded = hr.Graph.from_document(hr.get_default_graph().to_document())
    (grad,) = hr.gradients(loaded.get_tensor_by_name(y.name), loaded.get_tensor_by_name("x:0"))
    assert grad.graph is loaded
    with hr.Session(graph=loaded) as session:
        assert session.run(grad, {"x:0": 0.0}) == 1


# -- refusals


def test_an_op_without_rule_is_named_with_its_line() -> None:
    x = hr.placeholder(hr.float32, [2])
    y = gradientless(x, name="mine") * 2  # made here
    with pytest.raises(NoGradientError, match="'GradientlessForTest' has no gradient rule") as info:
        hr.gradients(y, x)
    text = str(info.value)
    assert "'mine' lies between the ys and the xs" in text
    assert "# made here" in text
    assert "headrace.extend.GradientTable" in text
    assert "hr.custom_gradient" in text
    assert len(text.splitlines()) <= 12
    assert hr.gradients(y, hr.placeholder(hr.float32)) == [None]


def test_broken_plugins_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    line = "  plugin 'theirs' is installed but broken: ImportError: no"
    monkeypatch.setattr(host(), "broken", lambda: line)
    x = hr.placeholder(hr.float32, [2])
    with pytest.raises(NoGradientError, match="plugin 'theirs' is installed but broken"):
        hr.gradients(gradientless(x), x)


def test_ys_and_xs_must_be_of_one_graph() -> None:
    x = hr.placeholder(hr.float32)
    with hr.Graph().as_default():
        other = hr.placeholder(hr.float32)
    with pytest.raises(GraphError, match="of xs belongs to another graph than ys"):
        hr.gradients(x * 2, other)
    with pytest.raises(GraphError, match="of ys belongs to another graph than ys"):
        hr.gradients([x, other], x)


def test_ys_and_xs_must_be_tensors() -> None:
    x = hr.placeholder(hr.float32)
    with pytest.raises(
        GraphError, match=r"ys are tensors or variables of a graph, got 3.0 \(float"
    ):
        hr.gradients(3.0, x)
    with pytest.raises(GraphError, match="xs are tensors or variables of a graph, got 'x'"):
        hr.gradients(x, ["x"])
    with pytest.raises(GraphError, match="xs are tensors or variables of a graph, got <Operation"):
        hr.gradients(x, x.op)
    with pytest.raises(GraphError, match="xs are tensors or variables of a graph, got 3"):
        hr.gradients(x, 3)
    assert hr.gradients([], [x, x]) == [None, None]


def test_grad_ys_must_fit() -> None:
    x = hr.placeholder(hr.float32, [2])
    y = x * 2
    with pytest.raises(GraphError, match="2 grad_ys for 1 ys"):
        hr.gradients(y, x, grad_ys=[1.0, 2.0])
    with pytest.raises(ShapeError, match=r"a grad_ys has shape \[3\] for the y"):
        hr.gradients(y, x, grad_ys=hr.zeros([3]))
    with pytest.raises(DTypeError, match="a grad_ys is float64 for the y"):
        hr.gradients(y, x, grad_ys=hr.zeros([2], hr.float64))


def test_a_complex_y_needs_grad_ys() -> None:
    x = hr.placeholder(hr.complex64)
    with pytest.raises(DTypeError, match="is complex, so that its gradient has no natural start"):
        hr.gradients(x * x, x)


def test_unconnected_gradients_has_two_values() -> None:
    x = hr.placeholder(hr.float32)
    with pytest.raises(AttributeValueError, match="is 'none' or 'zero', got 'maybe'"):
        hr.gradients(x, x, unconnected_gradients="maybe")


def test_a_finalized_graph_is_not_extended() -> None:
    x = hr.placeholder(hr.float32)
    y = x * 2
    hr.get_default_graph().finalize()
    with pytest.raises(GraphError, match="the graph was finalized"):
        hr.gradients(y, x)
