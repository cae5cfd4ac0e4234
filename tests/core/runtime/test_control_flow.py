"""Switch and Merge: dead values, here and across devices."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import DeadTensorError, FetchError, InvalidArgumentError

pytestmark = pytest.mark.usefixtures("mini")


def branches(device: str = ""):
    pred = hr.placeholder(hr.bool, [], name="pred")
    x = hr.constant([1.0, 2.0])
    taken = hr.Variable(0.0, name="taken")
    off, on = hr.switch(x, pred)
    with hr.device(device):
        doubled = on * 2.0
        with hr.control_dependencies([doubled]):
            counted = hr.assign_add(taken, 1.0)
        negated = -off
    merged, index = hr.merge([negated, doubled])
    return pred, taken, doubled, counted, merged, index


@pytest.mark.parametrize("device", ["", "/cpu:1"])
@pytest.mark.parametrize("optimize", [True, False])
def test_only_the_taken_branch_runs(device, optimize):
    pred, taken, _, counted, merged, index = branches()
    with hr.Session(config=hr.Config(optimize=optimize, verify=True)) as sess:
        sess.run(taken.initializer)
        value, which = sess.run([merged, index], {pred: False})
        np.testing.assert_array_equal(value, [-1, -2])
        assert which == 0
        sess.run(counted.op, {pred: False})
        assert sess.run(taken) == 0.0
        sess.run(counted.op, {pred: True})
        assert sess.run(taken) == 1.0
        value, which = sess.run([merged, index], {pred: True})
        np.testing.assert_array_equal(value, [2, 4])
        assert which == 1


def test_fetching_a_dead_value_is_explained():
    pred, _, doubled, *_ = branches()
    assert issubclass(DeadTensorError, FetchError)
    assert issubclass(DeadTensorError, InvalidArgumentError)
    with hr.Session() as sess, pytest.raises(DeadTensorError, match="is dead in this step"):
        sess.run(doubled, {pred: False})


def test_deadness_crosses_devices():
    pred, _, _, _, merged, _ = branches("/cpu:1")
    with hr.Session() as sess:
        np.testing.assert_array_equal(sess.run(merged, {pred: True}), [2, 4])
        np.testing.assert_array_equal(sess.run(merged, {pred: False}), [-1, -2])


def test_merge_of_dead_values_is_dead():
    pred = hr.placeholder(hr.bool, [])
    off, _ = hr.switch(hr.constant(1.0), pred)
    merged, _ = hr.merge([off * 2.0, off * 3.0])
    with hr.Session() as sess, pytest.raises(FetchError, match="is dead"):
        sess.run(merged, {pred: True})
