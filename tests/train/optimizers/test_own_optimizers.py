"""Optimizers of others: from one formula, and with TensorFlow's methods."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import UnimplementedError

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("graph", "no_races")]


def steps(optimizer: hr.train.Optimizer, rows: list[int] | None, count: int) -> Any:
    """Return a table of 3 rows after some steps with gradients of ones, and its slots."""
    x = hr.Variable(np.zeros((3, 2)), name="x")
    loss = hr.reduce_sum(x if rows is None else hr.gather(x, rows))
    step = optimizer.minimize(loss, hr.train.get_or_create_global_step())
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        for _ in range(count):
            session.run(step)
        return session.run([x, optimizer.variables()])


class Averaging(hr.train.Optimizer):
    """As it would be written for TensorFlow."""

    def __init__(self, learning_rate: float, use_locking: bool = False, name: str = "Averaging"):
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._rate: Any = None
        self.calls: list[str] = []

    def _create_slots(self, var_list: Any) -> None:
        first = min(var_list, key=lambda v: v.name)
        self._create_non_slot_variable(initial_value=1.0, name="factor", colocate_with=first)
        for v in var_list:
            self._zeros_slot(v, "sum", self._name)
            self._get_or_make_slot(v, hr.ones_like(v), "count", self._name)

    def _prepare(self) -> None:
        rate = self._call_if_callable(self._learning_rate)
        self._rate = hr.convert_to_tensor(rate, name="learning_rate")

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        self.calls.append("dense")
        total = hr.assign_add(self.get_slot(var, "sum"), grad)
        return hr.assign_sub(var, hr.cast(self._rate, var.dtype) * total)

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        raise AssertionError("the variant for other variables is not asked")

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        self.calls.append("sparse")
        total = hr.scatter_add(self.get_slot(var, "sum"), grad.indices, grad.values)
        change = hr.cast(self._rate, var.dtype) * hr.gather(total, grad.indices)
        return hr.scatter_sub(var, grad.indices, change)

    def _finish(self, update_ops: Any, name_scope: str) -> Any:
        factor = self._get_non_slot_variable("factor", graph=hr.get_default_graph())
        with hr.control_dependencies(update_ops):
            grown = hr.assign(factor, factor * 2.0)
        return hr.group(*update_ops, grown, name=name_scope)


class TestTensorFlowsMethods:
    def test_dense(self) -> None:
        optimizer = Averaging(0.5)
        x, (factor, total, count) = steps(optimizer, None, 2)
        assert optimizer.calls == ["dense"]
        np.testing.assert_array_equal(x, np.full((3, 2), -1.5))
        np.testing.assert_array_equal(total, np.full((3, 2), 2.0))
        np.testing.assert_array_equal(count, np.ones((3, 2)))
        assert factor == 4.0
        names = [v.op_name for v in optimizer.variables()]
        assert names == ["factor", "x/Averaging", "x/Averaging_1"]

    def test_sparse_gets_each_row_once(self) -> None:
        optimizer = Averaging(lambda: 0.5)  # type: ignore[arg-type]
        x, _ = steps(optimizer, [0, 2, 0], 1)
        assert optimizer.calls == ["sparse"]
        np.testing.assert_array_equal(x[:, 0], [-1.0, 0.0, -0.5])

    def test_the_variant_for_resource_variables_will_do(self) -> None:
        class Modern(hr.train.Optimizer):
            def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
                return handle.assign_sub(0.5 * grad)

            def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Any:
                return handle.scatter_nd_sub(hr.expand_dims(indices, 1), grad)

        x, _ = steps(Modern(False, "Modern"), None, 2)
        np.testing.assert_array_equal(x, np.full((3, 2), -1.0))
        with hr.Graph().as_default():
            x, _ = steps(Modern(False, "Modern"), [1, 1], 1)
        np.testing.assert_array_equal(x[:, 1], [0.0, -2.0, 0.0])

    def test_what_is_missing_is_named(self) -> None:
        with pytest.raises(UnimplementedError, match=r"Optimizer has no _apply_dense\(grad, var\)"):
            steps(hr.train.Optimizer(False, "None"), None, 1)

    def test_other_dtypes(self) -> None:
        class Long(hr.train.GradientDescentOptimizer):
            def _valid_dtypes(self) -> set[hr.DType]:
                return {hr.float64}

        with pytest.raises(hr.errors.DTypeError, match="a loss must be floating"):
            Long(0.1).minimize(hr.square(hr.Variable(1.0)))

    def test_slots_may_have_initializers(self) -> None:
        class Filled(hr.train.GradientDescentOptimizer):
            def _create_slots(self, var_list: Any) -> None:
                for v in var_list:
                    start = hr.constant_initializer(3.0)
                    self._get_or_make_slot_with_initializer(
                        v, start, v.shape, v.dtype, "extra", "Extra"
                    )
                    assert self._slot_dict("extra")[v] is self.get_slot(v, "extra")

        optimizer = Filled(0.1)
        _, (extra,) = steps(optimizer, None, 1)
        assert extra.dtype == np.float64
        np.testing.assert_array_equal(extra, np.full((3, 2), 3.0))


class Fading(hr.train.ElementwiseOptimizer):
    """A formula with a slot."""

    def __init__(self, moves: bool = False) -> None:
        super().__init__(False, "Fading", {"rate": 0.5})
        self._idle_rows_move = moves

    def _create_slots(self, var_list: Any) -> None:
        for v in var_list:
            self._zeros_slot(v, "kept", self._name)

    def _step(self, grad: Any, old: Any) -> hr.train.Step:
        kept = old["kept"] * 0.5 + grad
        change = self._hyperparameter("rate", grad.dtype) * kept
        return hr.train.Step(value=old.value - change, slots={"kept": kept})


class TestFormula:
    @pytest.mark.parametrize("moves", [False, True])
    def test_of_rows_is_that_of_all_where_all_are_named(self, moves: bool) -> None:
        whole = steps(Fading(moves), None, 3)
        with hr.Graph().as_default():
            rows = steps(Fading(moves), [2, 0, 1], 3)
        for one, other in zip((whole[0], *whole[1]), (rows[0], *rows[1]), strict=True):
            np.testing.assert_array_equal(one, other)

    def test_idle_rows_wait_or_move(self) -> None:
        found = {}
        for moves in (False, True):
            with hr.Graph().as_default():
                x = hr.Variable(np.zeros((2, 1)))
                ids = hr.placeholder(hr.int32, [None])
                step = Fading(moves).minimize(hr.reduce_sum(hr.gather(x, ids)))
                with hr.Session() as session:
                    session.run(hr.global_variables_initializer())
                    session.run(step, {ids: [0, 1, 1]})
                    session.run(step, {ids: [0]})
                    found[moves] = session.run(x)[:, 0].tolist()
        assert found == {False: [-1.25, -1.0], True: [-1.25, -1.5]}

    def test_without_a_formula_there_is_no_optimizer(self) -> None:
        with pytest.raises(TypeError, match=r"abstract method '?_step"):
            hr.train.ElementwiseOptimizer(False, "None")  # type: ignore[abstract]
