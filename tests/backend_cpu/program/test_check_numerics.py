"""Config(check_numerics=True): the operation that makes a NaN or an infinity is named."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import ExecutionError, NumericsError

CHECKED = hr.Config(check_numerics=True)
INF, NAN = float("inf"), float("nan")


@pytest.fixture
def session():
    with hr.Session(config=CHECKED) as opened:
        yield opened


def test_the_operation_the_numbers_and_the_line_are_named(session):
    x = hr.placeholder(hr.float32, [None], name="x")
    y = hr.log(x, name="y")  # the line
    z = hr.reduce_sum(y * 2.0)
    wanted = (
        r"(?s)Log makes 1 NaN and 2 infinities among the 4 numbers of .y:0., out of finite "
        r"numbers: "
        r"feed of x:0 from -1 to 2\n  in Log 'y'; inputs: float32\[4\]\n  at .*# the line"
    )
    with pytest.raises(NumericsError, match=wanted) as caught:
        session.run(z, {x: [0.0, 0.0, -1.0, 2.0]})
    assert isinstance(caught.value, FloatingPointError)
    assert isinstance(caught.value, ExecutionError)
    assert session.run(z, {x: [1.0]}) == 0.0


def test_what_is_fed_constant_or_stored_may_be_anything(session):
    x = hr.placeholder(hr.float32, [None], name="x")
    mask = hr.constant([-INF, 0.0])
    v = hr.Variable([NAN, INF], name="v")
    session.run(hr.global_variables_initializer())
    np.testing.assert_array_equal(session.run(x * 2.0, {x: [NAN, INF]}), [NAN, INF])
    np.testing.assert_array_equal(session.run(x + mask, {x: [1.0, 2.0]}), [-INF, 2.0])
    np.testing.assert_array_equal(session.run(v + 1.0), [NAN, INF])


def test_a_nan_made_of_infinities_is_named(session):
    x = hr.placeholder(hr.float32, [None], name="x")
    with pytest.raises(NumericsError, match=r"Sub makes 1 NaN among the 1 number .* out of no NaN"):
        session.run(x - x, {x: [INF]})


def test_constants_are_not_folded_away_before(session):
    with pytest.raises(NumericsError, match="Div makes 1 infinity"):
        session.run(hr.constant(1.0) / hr.constant(0.0) * 2.0)


def test_inside_a_loop(session):
    x = hr.placeholder(hr.float32, [None], name="x")
    _, y = hr.while_loop(lambda i, t: i < 30, lambda i, t: (i + 1, hr.exp(t)), [hr.constant(0), x])
    with pytest.raises(NumericsError, match=r"Exp makes 1 infinity .* 'while/Exp:0'"):
        session.run(y, {x: [0.0]})


def test_inside_a_condition(session):
    x = hr.placeholder(hr.float32, [None], name="x")
    y = hr.cond(hr.reduce_sum(x) > 0, lambda: hr.sqrt(-x), lambda: x * 3.0)
    with pytest.raises(NumericsError, match="Sqrt makes 1 NaN"):
        session.run(y, {x: [4.0]})
    np.testing.assert_array_equal(session.run(y, {x: [-1.0]}), [-3.0])


def test_inside_a_function(session):
    @hr.function
    def inverse(t):
        return 1.0 / t

    x = hr.placeholder(hr.float32, [None], name="x")
    with pytest.raises(NumericsError, match="Div makes 1 infinity"):
        session.run(inverse(x), {x: [0.0, 1.0]})


@pytest.mark.needs("autodiff")
def test_in_a_gradient(session):
    x = hr.placeholder(hr.float32, [None], name="x")
    (slope,) = hr.gradients(hr.reduce_sum(hr.sqrt(x)), x)  # the line
    with pytest.raises(NumericsError, match=r"(?s)Div makes 1 infinity .*gradients.*# the line"):
        session.run(slope, {x: [0.0, 1.0]})


@pytest.mark.parametrize(
    "change",
    [
        lambda v: hr.assign_add(v, [3.3e38]),
        lambda v: hr.assign_sub(v, [-3.3e38]),
        lambda v: hr.scatter_add(v, [0], [3.3e38]),
    ],
    ids=["add", "sub", "scatter"],
)
def test_a_variable_keeps_its_value_when_its_change_is_refused(session, change):
    v = hr.Variable(hr.constant([1e38]), name="v")
    step = change(v)
    session.run(hr.global_variables_initializer())
    with pytest.raises(NumericsError, match="Variable makes 1 infinity among the 1 number"):
        session.run(step)
    np.testing.assert_array_equal(session.run(v), np.float32([1e38]))


def test_what_depends_on_the_operation_does_not_run(session):
    x = hr.placeholder(hr.float32, [], name="x")
    v = hr.Variable(5.0, name="v")
    step = hr.assign(v, hr.log(x))
    session.run(hr.global_variables_initializer())
    with pytest.raises(NumericsError, match="Log makes 1 infinity"):
        session.run(step, {x: 0.0})
    assert session.run(v) == 5.0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "complex64"])
def test_every_kind_of_number(session, dtype):
    x = hr.placeholder(dtype, [None], name="x")
    with pytest.raises(NumericsError, match="Div makes"):
        session.run(x / (x - x), {x: np.ones(2, hr.as_dtype(dtype).numpy)})


def test_integers_and_strings_pass(session):
    assert session.run(hr.constant([1, 2]) + 1).tolist() == [2, 3]
    assert session.run(hr.constant("a")) == b"a"


def test_without_the_setting_nothing_is_refused():
    with hr.Session() as session:
        assert session.run(hr.log(hr.constant(0.0))) == -INF
