"""``Variable(variable_def=...)``: the variable of the graph that a message describes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError, DataLossError, DTypeError

pytestmark = [
    pytest.mark.needs("autodiff", "backend-cpu", "train"),
    pytest.mark.usefixtures("graph"),
]

EXECUTORS = ("plan", "plain")


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("trainable", [True, False])
def test_it_is_the_variable_once_more(executor: str, trainable: bool) -> None:
    v = hr.Variable([1.0, 2.0], name="v", trainable=trainable)
    again = hr.Variable(variable_def=v.to_proto())
    assert again is not v
    assert (again.name, again.shape, again.dtype) == (v.name, v.shape, v.dtype)
    assert again.trainable is trainable
    assert again.initializer is v.initializer
    assert hr.global_variables() == [v]
    with hr.Session(config=hr.Config(executor=executor, compile_after=1)) as sess:
        sess.run(again.initializer)
        for _ in range(3):
            sess.run(again.assign_add([1.0, 1.0]))
        np.testing.assert_array_equal(sess.run(v), [4.0, 5.0])
        np.testing.assert_array_equal(sess.run(again * 2.0), [8.0, 10.0])


@pytest.mark.parametrize("executor", EXECUTORS)
def test_gradients_and_optimizers_take_it(executor: str) -> None:
    v = hr.Variable([1.0, 2.0])
    again = hr.Variable(variable_def=v.to_proto())
    step = hr.train.GradientDescentOptimizer(0.5).minimize(
        hr.reduce_sum(again * again), var_list=[again]
    )
    with hr.Session(config=hr.Config(executor=executor)) as sess:
        sess.run(hr.global_variables_initializer())
        sess.run(step)
        np.testing.assert_array_equal(sess.run(v), [0.0, 0.0])


def test_it_stands_under_a_scope() -> None:
    message = hr.Variable(3.0, name="v").to_proto()
    with hr.Graph().as_default():
        with hr.name_scope("copy"):
            hr.Variable(5.0, name="v")
        again = hr.Variable(variable_def=message, import_scope="copy")
        assert again.name == "copy/v:0"
        with hr.Session() as sess:
            sess.run(again.initializer)
            assert sess.run(again) == 5.0


REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "both": (lambda m: hr.Variable(1.0, variable_def=m), AttributeValueError, "not both"),
    "none": (lambda m: hr.Variable(), DTypeError, "needs an initial_value"),
    "another graph": (lambda m: hr.Variable(variable_def=m), DataLossError, "does not have"),
    "no message": (lambda m: hr.Variable(variable_def=3), DTypeError, "variable_def"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_others_are_refused(case: str) -> None:
    make, error, message = REFUSED[case]
    described = hr.Variable(1.0, name="elsewhere").to_proto()
    with hr.Graph().as_default(), pytest.raises(error, match=message):
        make(described)
