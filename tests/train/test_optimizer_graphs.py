"""What optimizers build: names, places and order of the operations, and what they refuse."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    AttributeValueError,
    DTypeError,
    GraphError,
    ShapeError,
    UnimplementedError,
)
from headrace_train.optimizers.ordering import reads_to_await

pytestmark = pytest.mark.usefixtures("graph")


def descent(rate: Any = 0.5) -> hr.train.GradientDescentOptimizer:
    return hr.train.GradientDescentOptimizer(rate)


def updates_of(variable: hr.Variable) -> list[hr.Operation]:
    return [
        op
        for op in hr.get_default_graph().operations
        if op.type == "AssignSubVariable" and op.inputs[0] is variable.handle
    ]


class TestSlots:
    def test_are_named_after_their_variables(self) -> None:
        with hr.name_scope("layer"):
            W = hr.Variable(np.zeros((2, 3)), name="W")
        b = hr.Variable(np.zeros(3, np.float32), name="b")
        loss = hr.reduce_sum(W) + hr.cast(hr.reduce_sum(b), hr.float64)
        momentum = hr.train.MomentumOptimizer(0.1, 0.9)
        adam = hr.train.AdamOptimizer(name="Eve")
        with hr.name_scope("training"), hr.device("/cpu:0"):
            momentum.minimize(loss)
            adam.minimize(loss)
        assert [v.op_name for v in momentum.variables()] == ["b/Momentum", "layer/W/Momentum"]
        assert [v.op_name for v in adam.variables()] == [
            "b/Eve",
            "b/Eve_1",
            "layer/W/Eve",
            "layer/W/Eve_1",
            "training/beta1_power",
            "training/beta2_power",
        ]
        assert momentum.get_slot_names() == ["momentum"]
        assert adam.get_slot_names() == ["m", "v"]
        slot = adam.get_slot(b, "v")
        assert slot is not None
        assert (slot.dtype, slot.shape, slot.trainable) == (hr.float32, [3], False)
        assert adam.get_slot(b, "nothing") is None

    def test_live_with_their_variables(self) -> None:
        with hr.device("/job:ps/task:1"), hr.container("kept"):
            W = hr.Variable(np.zeros(2), name="W", shared_name="weights")
        optimizer = hr.train.AdamOptimizer()
        with hr.device("/job:worker"):
            optimizer.minimize(hr.reduce_sum(W))
        for slot in optimizer.variables():
            assert W.handle.op in slot.handle.op.colocated_with
            assert slot.device == W.device == "/job:ps/task:1"
            assert slot.handle.op.attrs["container"] == "kept"
        m = optimizer.get_slot(W, "m")
        assert m is not None
        assert m.handle.op.attrs["shared_name"] == "weights/Adam"
        assert all(W.handle.op in op.colocated_with for op in updates_of(W))

    def test_of_an_unknown_shape_are_shaped_like_the_initial_value(self) -> None:
        start = hr.placeholder(hr.float32, [None])
        x = hr.Variable(start, name="x", validate_shape=False)
        optimizer = hr.train.MomentumOptimizer(0.1, 0.9)
        optimizer.apply_gradients([(hr.placeholder(hr.float32, [None]), x)])
        slot = optimizer.get_slot(x, "momentum")
        assert slot is not None
        assert slot.initial_value.shape.rank == 1

    def test_of_another_graph_are_others(self) -> None:
        optimizer = hr.train.AdamOptimizer()
        for _ in range(2):
            with hr.Graph().as_default() as graph:
                optimizer.minimize(hr.square(hr.Variable(1.0, name="x")))
                names = ["beta1_power", "beta2_power", "x/Adam", "x/Adam_1"]
                assert [v.op_name for v in optimizer.variables()] == names
                assert all(v.graph is graph for v in optimizer.variables())
        assert optimizer.variables() == []

    def test_the_powers_are_as_wide_as_the_widest_variable(self) -> None:
        for dtype, expected in ((hr.float16, hr.float32), (hr.float64, hr.float64)):
            with hr.Graph().as_default():
                optimizer = hr.train.AdamOptimizer()
                optimizer.minimize(hr.square(hr.Variable(1.0, dtype=dtype)))
                powers = [v for v in optimizer.variables() if "power" in v.op_name]
                assert [v.dtype for v in powers] == [expected, expected]


class TestResult:
    def test_is_an_operation(self) -> None:
        x = hr.Variable(1.0)
        step = descent().minimize(hr.square(x), name="learn")
        assert isinstance(step, hr.Operation)
        assert step.name == "learn"
        assert hr.get_collection(hr.GraphKeys.TRAIN_OP) == [step]

    def test_counts_after_all_updates(self) -> None:
        a, b = hr.Variable(1.0), hr.Variable(2.0)
        counter = hr.train.get_or_create_global_step()
        step = descent().minimize(a * b, global_step=counter)
        assert step.type == "AssignAddVariable"
        (last,) = step.control_inputs
        assert set(last.control_inputs) == {*updates_of(a), *updates_of(b)}

    def test_of_a_variable_that_the_loss_does_not_depend_on(self) -> None:
        a, b = hr.Variable(1.0), hr.Variable(2.0)
        pairs = descent().compute_gradients(hr.square(a))
        assert [v for _, v in pairs] == [a, b]
        assert pairs[0][0] is not None
        assert pairs[1][0] is None
        descent().apply_gradients(pairs)
        assert updates_of(a)
        assert not updates_of(b)

    def test_leaves_out_what_is_not_trainable(self) -> None:
        a, b = hr.Variable(1.0), hr.Variable(2.0, trainable=False)
        count = hr.Variable(3, name="a_count")
        pairs = descent().compute_gradients(a * b)
        assert [(g is None, v) for g, v in pairs] == [(False, a), (True, count)]
        assert [v for _, v in descent().compute_gradients(a * b, var_list=(b,))] == [b]


class TestOrder:
    """Reads of the step come before its writes, where data edges do not see to it already."""

    def waits_of(self, variable: hr.Variable) -> set[hr.Operation]:
        return {op for update in updates_of(variable) for op in update.control_inputs}

    def test_no_edges_where_the_gradient_depends_on_the_read(self) -> None:
        a = hr.Variable(np.ones((2, 2)), name="a")
        b = hr.Variable(np.ones((2, 2)), name="b")
        hidden = hr.tanh(hr.matmul(hr.placeholder(hr.float64, [None, 2]), a))
        descent().minimize(hr.reduce_sum(hr.square(hr.matmul(hidden, b))))
        assert self.waits_of(a) == set()
        assert self.waits_of(b) == set()

    def test_a_product(self) -> None:
        a, b = hr.Variable(2.0, name="a"), hr.Variable(3.0, name="b")
        read_a, read_b = a.value(), b.value()
        descent().minimize(read_a * read_b)
        assert self.waits_of(a) == {read_a.op}
        assert self.waits_of(b) == {read_b.op}

    def test_the_loss_itself(self) -> None:
        a = hr.Variable(2.0, name="a")
        read = a.value()
        descent().minimize(read + 1.0)
        assert self.waits_of(a) == {read.op}

    def test_the_losses_of_separate_halves(self) -> None:
        a = hr.Variable(2.0, name="a")
        read = a.value()
        optimizer = descent()
        optimizer.apply_gradients(optimizer.compute_gradients(3.0 * read))
        assert self.waits_of(a) == {read.op}

    def test_reads_in_a_branch_are_left_out(self) -> None:
        a = hr.Variable(2.0, name="a")
        off, on = hr.switch(hr.constant(1.0), hr.placeholder(hr.bool, []))
        with hr.control_dependencies([on]):
            inside = a.value()
        merged, _ = hr.merge([inside * on, off])
        outside = a.value()
        gradient = hr.constant(1.0)
        assert reads_to_await([gradient, merged, outside], {a: [gradient]}) == {a: [outside.op]}

    def test_of_a_merge_only_what_all_branches_read_has_run(self) -> None:
        a = hr.Variable(2.0, name="a")
        pred = hr.placeholder(hr.bool, [])
        both, one = a.value(), a.value()
        off, on = hr.switch(both, pred)
        merged, _ = hr.merge([off * both, on * one])
        assert reads_to_await([merged], {a: [merged]}) == {a: [one.op]}

    @pytest.mark.needs("backend-cpu")
    def test_updates_never_come_before_the_gradients(self) -> None:
        count = 6
        start = np.linspace(0.5, 1.5, count)
        vs = [hr.Variable(value, name=f"v{i}") for i, value in enumerate(start)]
        # Each gradient is made of the others' values: whoever comes late would see a changed one.
        loss: Any = hr.constant(0.0, hr.float64)
        for i in range(count):
            loss = loss + vs[i] * vs[(i + 1) % count]
        step = descent(0.01).minimize(loss)
        values = start.copy()
        with hr.Session() as session:
            session.run(hr.global_variables_initializer())
            for _ in range(200):
                before = float((values * np.roll(values, -1)).sum())
                _, found = session.run([step, loss])
                np.testing.assert_allclose(found, before, rtol=1e-9)
                values = values - 0.01 * (np.roll(values, 1) + np.roll(values, -1))
            np.testing.assert_allclose(session.run(vs), values, rtol=1e-9)


class TestRefusals:
    def test_no_gradient_for_any_variable(self) -> None:
        hr.Variable(1.0, name="first")
        hr.Variable(1.0, name="second")
        with pytest.raises(GraphError, match=r"no gradient reaches any .* first, second; does the"):
            descent().minimize(hr.constant(1.0))

    def test_no_variables(self) -> None:
        with pytest.raises(GraphError, match="the graph has no trainable variables; make some"):
            descent().minimize(hr.constant(1.0))
        with pytest.raises(GraphError, match="var_list is empty"):
            descent().minimize(hr.constant(1.0), var_list=[])
        with pytest.raises(GraphError, match="there are no variables to apply gradients to"):
            descent().apply_gradients([])

    def test_what_is_no_variable(self) -> None:
        x = hr.Variable(1.0)
        read = x.value()
        with pytest.raises(UnimplementedError, match="changes variables, got <Tensor"):
            descent().minimize(hr.square(read), var_list=[read])
        with pytest.raises(GraphError, match="changes variables, got 3 in var_list"):
            descent().minimize(hr.square(x), var_list=[[x, 3]])

    def test_a_variable_twice(self) -> None:
        x = hr.Variable(1.0, name="x")
        with pytest.raises(GraphError, match="'x' is listed twice"):
            descent().minimize(hr.square(x), var_list=[x, x])

    def test_variables_of_two_graphs(self) -> None:
        x = hr.Variable(1.0, name="x")
        with hr.Graph().as_default():
            y = hr.Variable(1.0, name="y")
        with pytest.raises(GraphError, match="'x' and 'y' belong to different graphs"):
            descent().minimize(hr.square(x), var_list=[x, y])

    def test_variables_that_are_not_floating(self) -> None:
        n = hr.Variable(1, name="n")
        with pytest.raises(DTypeError, match=r"floating variables only, got n \(int32\)"):
            descent().apply_gradients([(hr.constant(1), n)])

    def test_a_loss_that_is_not_floating(self) -> None:
        n = hr.Variable(1, name="n")
        with pytest.raises(DTypeError, match=r"a loss must be floating, got .*hr\.cast"):
            descent().minimize(n + 1)
        x = hr.Variable(1.0, name="x")
        with pytest.raises(DTypeError, match="grad_loss must be floating, got"):
            descent().minimize(hr.square(x), grad_loss=1 + n)

    def test_a_gradient_of_another_dtype(self) -> None:
        x = hr.Variable(1.0, name="x")
        with pytest.raises(DTypeError, match="gradient of 'x' is float64, expected float32"):
            descent().apply_gradients([(hr.constant(1.0, hr.float64), x)])

    def test_a_gradient_of_another_shape(self) -> None:
        x = hr.Variable(np.zeros((4, 3)), name="x")
        with pytest.raises(ShapeError, match=r"gradient of 'x' has shape \[3\], expected \[4, 3\]"):
            descent().apply_gradients([(np.zeros(3), x)])
        rows = hr.IndexedSlices(
            hr.constant(np.zeros((2, 2))), hr.constant([0, 1]), hr.constant([4, 2])
        )
        with pytest.raises(ShapeError, match=r"rows of the gradient of 'x' has shape \[2\]"):
            descent().apply_gradients([(rows, x)])

    def test_a_global_step_that_is_none(self) -> None:
        x = hr.Variable(1.0)
        with pytest.raises(DTypeError, match=r"integer or floating variable, got 7"):
            descent().minimize(hr.square(x), global_step=7)  # type: ignore[arg-type]

    @pytest.mark.needs("autodiff", "backend-cpu")
    @pytest.mark.parametrize("dtype", [hr.float32, hr.float64, hr.int32])
    def test_global_steps_of_several_dtypes(self, dtype: hr.DType) -> None:
        x, step = hr.Variable(1.0), hr.Variable(hr.constant(0, dtype))
        update = descent().minimize(hr.square(x), global_step=step)
        with hr.Session() as session:
            session.run(hr.global_variables_initializer())
            session.run(update)
            session.run(update)
            assert session.run(step) == 2

    @pytest.mark.parametrize("rate", ["0.1", None, True, [0.1, 0.2], np.ones(2)])
    def test_a_rate_that_is_no_number(self, rate: Any) -> None:
        with pytest.raises(AttributeValueError, match="learning_rate must be a number, a floating"):
            descent(rate)

    def test_a_rate_of_the_wrong_tensor_or_function(self) -> None:
        with pytest.raises(AttributeValueError, match="learning_rate must be a number, a floating"):
            descent(hr.constant([0.1, 0.2]))
        x = hr.Variable(1.0)
        with pytest.raises(AttributeValueError, match="learning_rate must be a number, a floating"):
            descent(lambda: "fast").minimize(hr.square(x))

    def test_an_empty_name(self) -> None:
        with pytest.raises(AttributeValueError, match="an optimizer needs a name"):
            hr.train.AdamOptimizer(name="")


def test_locking_that_several_writes_do_not_have_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        hr.train.GradientDescentOptimizer(0.1, use_locking=True)
        assert not caplog.records
        hr.train.MomentumOptimizer(0.1, 0.9, True)
    assert "Momentum: use_locking=True orders no concurrent steps" in caplog.text


def test_an_optimizer_of_ones_own() -> None:
    class Sign(hr.train.Optimizer):
        """Steps of one size."""

        def __init__(self, rate: float) -> None:
            super().__init__(False, "Sign", {"rate": rate})

        def _apply_dense(self, gradient: hr.Tensor, variable: hr.Variable) -> hr.Tensor:
            rate = self._hyperparameter("rate", gradient.dtype)
            return variable.assign_sub(rate * hr.sign(gradient))

    x = hr.Variable(np.zeros((4, 2)), name="x")
    step = Sign(0.5).minimize(hr.reduce_sum(hr.gather(x, [1, 1])))
    assert step.type == "NoOp"
    assert len(updates_of(x)) == 1


class TestGlobalStep:
    def test_is_found_by_its_name(self) -> None:
        assert hr.train.get_global_step() is None
        with hr.name_scope("somewhere"):
            step = hr.train.create_global_step()
        assert (step.op_name, step.dtype, step.trainable) == ("global_step", hr.int64, False)
        assert hr.train.get_global_step() is step
        assert hr.train.get_or_create_global_step() is step
        graph = hr.get_default_graph()
        with hr.Graph().as_default():
            assert hr.train.get_global_step() is None
            assert hr.train.get_global_step(graph) is step
            assert hr.train.get_or_create_global_step() is not step

    def test_there_is_one_only(self) -> None:
        hr.train.get_or_create_global_step()
        with pytest.raises(GraphError, match="the graph has a global step already"):
            hr.train.create_global_step()

    def test_of_the_wrong_kind(self) -> None:
        hr.Variable(1.0, name="global_step")
        with pytest.raises(DTypeError, match="the global step must be an integer scalar, got"):
            hr.train.get_or_create_global_step()

    def test_decay_in_no_steps(self) -> None:
        with pytest.raises(AttributeValueError, match="decay_steps must be above 0, got 0"):
            hr.train.exponential_decay(0.1, hr.train.create_global_step(), 0, 0.9)
