"""Gradients that programs define: named rules, overrides by scope, functions with their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import DTypeError, GraphError, NoGradientError, PluginError, ShapeError
from headrace.extend import Floating, Spec, op
from headrace_autodiff.lookup import USER_RULES
from tests.steps import run_ready

pytestmark = pytest.mark.usefixtures("graph")
runs = pytest.mark.needs("backend-cpu")


@pytest.fixture(autouse=True)
def _forget_rules() -> Iterator[None]:
    """Rules hold for the whole process; those of a test must not reach the next."""
    before = USER_RULES.offers
    yield
    USER_RULES.offers = before


@op("RulelessForTest", public="")
def ruleless(x: Floating, y: Floating) -> Spec:
    """An op whose rules the tests register."""
    return x.with_dtype(x.dtype)


@op("StoppedForTest", elementwise=True, public="")
def stopped(x: Floating) -> Spec:
    """An op of which the tests declare that it has no gradient."""
    return x.with_dtype(x.dtype)


# -- RegisterGradient and gradient_override_map


@runs
def test_guided_relu() -> None:
    @hr.RegisterGradient("GuidedReluForTest")
    def guided(op: Any, grad: hr.Tensor) -> hr.Tensor:
        return hr.where(grad > 0, hr.where(op.outputs[0] > 0, grad, 0), 0)

    x = hr.constant([-1.0, 1.0, 2.0])
    plain = hr.nn.relu(x)
    with hr.gradient_override_map({"Relu": "GuidedReluForTest"}):
        y = hr.nn.relu(x)
    weights = np.array([1, -1, 1], np.float32)
    assert run_ready(hr.gradients(y, x, weights))[0].tolist() == [0, 0, 1]
    assert run_ready(hr.gradients(plain, x, weights))[0].tolist() == [0, -1, 1]


@runs
def test_a_rule_for_an_op_that_is_declared_without_gradient() -> None:
    hr.RegisterGradient("StraightThroughForTest")(lambda op, grad: grad)
    x = hr.constant([-3.0, 2.0])
    with hr.gradient_override_map({"Floor": "StraightThroughForTest"}):
        y = hr.floor(x) * 5
    assert run_ready(hr.gradients(y, x))[0].tolist() == [5, 5]
    assert hr.gradients(hr.floor(x), x) == [None]


@runs
def test_an_op_without_rule_gets_one() -> None:
    @hr.RegisterGradient("RulelessForTest")
    def rule(op: Any, grad: hr.Tensor) -> list[Any]:
        return [grad * 2, None]

    x, y = hr.constant(1.0), hr.constant(2.0)
    grads = hr.gradients(ruleless(x, y), [x, y])
    assert grads[1] is None
    assert run_ready(grads[0]) == 2


def test_an_op_is_declared_to_pass_no_gradient_on() -> None:
    hr.NotDifferentiable("StoppedForTest")
    x = hr.constant(1.0)
    assert hr.gradients(stopped(x), x) == [None]
    assert (
        hr.gradients(stopped(x), x, unconnected_gradients=hr.UnconnectedGradients.ZERO)[0]
        is not None
    )
    assert hr.NoGradient is hr.NotDifferentiable is hr.no_gradient
    with pytest.raises(PluginError, match="Relu has a gradient rule already"):
        hr.NoGradient("Relu")
    with pytest.raises(GraphError, match="takes an op type or a name, got 3"):
        hr.NoGradient(3)


def test_overrides_nest_and_end() -> None:
    x = hr.placeholder(hr.float32)
    with hr.gradient_override_map({"Exp": "A", "Sin": "B"}):
        with hr.gradient_override_map({"Exp": "C"}):
            inner = [hr.exp(x), hr.sin(x), hr.cos(x)]
        outer = hr.exp(x)
    after = hr.exp(x)
    assert [t.op.gradient_rule for t in inner] == ["C", "B", ""]
    assert [t.op.gradient_rule for t in (outer, after)] == ["A", ""]


def test_documents_keep_the_name_of_a_rule() -> None:
    x = hr.placeholder(hr.float32, name="x")
    with hr.gradient_override_map({"Exp": "NobodyWroteThis"}):
        y = hr.exp(x)
    loaded = hr.Graph.from_document(hr.get_default_graph().to_document())
    assert loaded.get_operation_by_name(y.op.name).gradient_rule == "NobodyWroteThis"


def test_a_missing_rule_is_named_with_the_line() -> None:
    x = hr.placeholder(hr.float32)
    with hr.gradient_override_map({"Exp": "NobodyWroteThis"}):
        y = hr.exp(x)  # made here
    with pytest.raises(NoGradientError, match="no gradient rule is called 'NobodyWroteThis'") as e:
        hr.gradients(y, x)
    assert "# made here" in str(e.value)


def test_rules_of_ops_are_not_replaced_for_all() -> None:
    with pytest.raises(PluginError, match="Relu has a gradient rule already"):

        @hr.RegisterGradient("Relu")
        def rule(op: Any, grad: Any) -> Any:
            return grad


def test_two_rules_of_one_name_are_refused() -> None:
    hr.RegisterGradient("TwiceForTest")(lambda op, grad: grad)
    with pytest.raises(PluginError, match="two gradient rules for TwiceForTest"):
        hr.RegisterGradient("TwiceForTest")(
            lambda op, grad: grad * 2,
        )


def test_names_are_strings() -> None:
    with pytest.raises(GraphError, match="RegisterGradient takes an op type or a name, got 3"):
        hr.RegisterGradient(3)
    with (
        pytest.raises(GraphError, match="gradient_override_map takes op types and names of rules"),
        hr.gradient_override_map({"Relu": len}),  # type: ignore[dict-item]
    ):
        pass


@pytest.mark.parametrize(
    ("answer", "error", "match"),
    [
        (lambda g: [g], GraphError, "RulelessForTest returned 1 gradients for 2 inputs"),
        (
            lambda g: [hr.cast(g, hr.float64), None],
            DTypeError,
            r"returned float64 for the input .* of float32\[2\]",
        ),
        (lambda g: [hr.zeros([3]), None], ShapeError, r"returned shape \[3\] for the input"),
    ],
)
def test_a_rule_must_return_what_fits(answer: Any, error: Any, match: str) -> None:
    hr.RegisterGradient("RulelessForTest")(lambda op, grad: answer(grad))
    x = hr.placeholder(hr.float32, [2])
    with pytest.raises(error, match=match) as info:
        hr.gradients(ruleless(x, x, name="mine"), x)
    assert any("while differentiating RulelessForTest 'mine'" in n for n in info.value.__notes__)


# -- custom_gradient


@runs
def test_custom_gradient_is_stable_where_the_plain_one_is_not() -> None:
    @hr.custom_gradient
    def log1pexp(x: hr.Tensor) -> Any:
        e = hr.exp(x)
        return hr.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))

    x = hr.constant(100.0)
    assert run_ready(hr.gradients(log1pexp(x), x)) == [1]
    # Written out, the gradient is 1 / infinity * infinity.
    plain = hr.gradients(hr.log(1 + hr.exp(x)), x)
    assert np.isnan(run_ready(plain)).all()


@runs
def test_custom_gradient_of_many_tensors() -> None:
    @hr.custom_gradient
    def f(x: hr.Tensor, y: hr.Tensor) -> Any:
        def grad(da: hr.Tensor, db: hr.Tensor) -> Any:
            return da * 10, db * 100

        return [x + y, x * y], grad

    x, y = hr.constant(2.0), hr.constant(3.0)
    a, b = f(x, y)
    assert run_ready([a, b]) == [5, 6]
    assert run_ready(hr.gradients([a, b], [x, y])) == [10, 100]
    assert run_ready(hr.gradients(a, [x, y])) == [10, 0]


@runs
def test_custom_gradients_differentiate_again() -> None:
    @hr.custom_gradient
    def square(x: hr.Tensor) -> Any:
        return x * x, lambda dy: dy * 2 * x

    x = hr.constant(5.0)
    (first,) = hr.gradients(square(x) * x, x)
    assert run_ready([first, hr.gradients(first, x)[0]]) == [75, 30]


@runs
def test_custom_gradient_with_variables() -> None:
    v = hr.Variable(3.0)

    @hr.custom_gradient
    def scaled(x: hr.Tensor) -> Any:
        def grad(dy: hr.Tensor, variables: Any = None) -> Any:
            assert variables == [v]
            return [dy * 100], [dy * 7]

        return x * v, grad

    x = hr.constant(2.0)
    assert run_ready(hr.gradients(scaled(x), [x, v])) == [100, 7]


def test_custom_gradient_does_not_lose_variables() -> None:
    v = hr.Variable(3.0, name="weights")

    @hr.custom_gradient
    def scaled(x: hr.Tensor) -> Any:
        return x * v, lambda dy: dy

    with pytest.raises(GraphError, match="scaled reads weights:0, whose gradients would be lost"):
        scaled(hr.placeholder(hr.float32))


@runs
def test_a_variable_as_argument_is_no_other_variable() -> None:
    v = hr.Variable(3.0)

    @hr.custom_gradient
    def doubled(x: hr.Tensor) -> Any:
        return x * 2, lambda dy: dy * 5

    assert run_ready(hr.gradients(doubled(v), v)) == [5]


def test_custom_gradient_must_return_a_pair() -> None:
    @hr.custom_gradient
    def f(x: hr.Tensor) -> Any:
        return x

    x = hr.placeholder(hr.float32)
    with pytest.raises(GraphError, match=r"f must return \(y, grad_fn\)"):
        f(x)


def test_grad_fn_must_return_one_gradient_each() -> None:
    @hr.custom_gradient
    def f(x: hr.Tensor, y: hr.Tensor) -> Any:
        return x + y, lambda dy: dy

    x = hr.placeholder(hr.float32)
    y = f(x, x)
    with pytest.raises(GraphError, match="grad_fn of f returned 1 gradients for 2 arguments"):
        hr.gradients(y, x)


def test_with_variables_grad_fn_must_return_two_lists() -> None:
    v = hr.Variable(3.0)

    @hr.custom_gradient
    def f(x: hr.Tensor) -> Any:
        return x * v, lambda dy, variables: dy

    x = hr.placeholder(hr.float32)
    y = f(x)
    with pytest.raises(GraphError, match="with variables, grad_fn of f returns two lists"):
        hr.gradients(y, x)


@runs
def test_a_document_does_not_hold_a_custom_gradient() -> None:
    @hr.custom_gradient
    def f(x: hr.Tensor) -> Any:
        return x * 2, lambda dy: dy * 3

    x = hr.placeholder(hr.float32, [], name="x")
    y = f(x)
    assert run_ready(hr.gradients(y, x), {x: 1.0}) == [3]
    loaded = hr.Graph.from_document(hr.get_default_graph().to_document())
    with pytest.raises(NoGradientError, match="which graph\n  documents do not hold"):
        hr.gradients(loaded.get_tensor_by_name(y.name), loaded.get_tensor_by_name("x:0"))
    with hr.Session(graph=loaded) as session:
        assert session.run(y.name, {"x:0": 4.0}) == 8
