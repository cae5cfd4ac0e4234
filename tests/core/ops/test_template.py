"""Templates share their variables between calls, under TensorFlow 1.15's names."""

from __future__ import annotations

from typing import Any

import pytest

import headrace as hr
from headrace.errors import GraphError


def _linear(x: Any, k: float = 1.0) -> hr.Tensor:
    return x * hr.get_variable("w", []) * k


def _names() -> list[str]:
    return [v.name for v in hr.global_variables()]


# The names are those of a run of TensorFlow 1.15.5.
def test_calls_share_variables_under_the_name_of_the_first() -> None:
    template = hr.make_template("lin", _linear, k=2.0)
    assert template.variable_scope is None
    assert template.variables == []
    first, second = template(hr.constant(1.0)), template(3.0)
    assert _names() == ["lin/w:0"]
    assert (first.name, second.name) == ("lin/mul_1:0", "lin_1/mul_1:0")
    assert (template.name, template.var_scope.name) == ("lin", "lin")
    hr.make_template("lin", _linear)(1.0)
    assert _names() == ["lin/w:0", "lin_1/w:0"]


def test_scopes_are_made_at_once_or_in_the_first_call() -> None:
    with hr.variable_scope("outer"):
        early = hr.make_template("lin", _linear, create_scope_now_=True)
        late = hr.make_template("lin", _linear)
    late(1.0)
    early(1.0)
    assert _names() == ["lin/w:0", "outer/lin/w:0"]
    assert [v.name for v in early.trainable_variables] == ["outer/lin/w:0"]
    assert early.variables == early.global_variables == early.trainable_variables
    assert early.local_variables == []


def test_a_unique_name_is_taken_as_it_is() -> None:
    hr.make_template("x", _linear, unique_name_="u")(1.0)
    assert _names() == ["u/w:0"]
    with pytest.raises(GraphError, match="'u/w' exists already"):
        hr.make_template("x", _linear, unique_name_="u")(1.0)


def test_a_getter_of_its_own_gets_all_variables() -> None:
    asked = []

    def getter(getter: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        asked.append(name)
        return getter(name, *args, **kwargs)

    hr.make_template("lin", _linear, custom_getter_=getter)(1.0)
    assert asked == ["lin/w"]


def test_a_later_call_makes_no_variables() -> None:
    names = iter("abc")
    template = hr.make_template("t", lambda x: x * hr.get_variable(next(names), []))
    template(1.0)
    with pytest.raises(GraphError, match="no variable 't/b'") as caught:
        template(1.0)
    assert "finds the variables that its first call made" in caught.value.__notes__[0]


def test_mistakes() -> None:
    with pytest.raises(GraphError, match="a name is a string"):
        hr.make_template(3, _linear)
    with pytest.raises(GraphError, match="make_template takes a function, got 3"):
        hr.make_template("t", 3)


def test_the_first_call_has_the_name_scope_of_the_variables() -> None:
    one, two = (hr.make_template("lin", _linear, create_scope_now_=True) for _ in range(2))
    assert [one.variable_scope_name, two.variable_scope_name] == ["lin/", "lin_1/"]
    names = [template(hr.constant(1.0)).op.name for template in (one, one, two, two)]
    assert names == ["lin/mul_1", "lin_1/mul_1", "lin_1_1/mul_1", "lin_1_2/mul_1"]
    assert _names() == ["lin/w:0", "lin_1/w:0"]


def test_variables_are_told_apart_once_a_call_has_made_them() -> None:
    def build(trainable: bool) -> hr.Variable:
        hr.get_local_variable("local", [])
        return hr.get_variable("w", [], trainable=trainable)

    one = hr.make_template("one", build, create_scope_now_=True, trainable=True)
    two = hr.make_template("two", build, trainable=False)
    assert two.variable_scope_name is None
    assert one.variables == one.non_trainable_variables == two.weights == []
    w, v = one(), two()
    assert one.trainable_variables == one.trainable_weights == [w]
    assert one.non_trainable_variables == one.non_trainable_weights == []
    assert two.trainable_variables == []
    assert two.non_trainable_variables == two.non_trainable_weights == [v]
    assert [x.name for x in two.weights] == ["two/w:0", "two/local:0"]
    assert callable(one.func)


def test_a_later_call_makes_no_trainable_variables_without_their_getter() -> None:
    template = hr.make_template("t", lambda: hr.Variable(1.0, name="v"))
    template()
    with pytest.raises(GraphError, match="made trainable variables: t_1/v:0; get them with"):
        template()
    counter = hr.make_template("t", lambda: hr.Variable(1.0, trainable=False, name="v"))
    assert counter() is not counter()


def test_an_empty_name_is_that_of_the_scope_around() -> None:
    template = hr.make_template("", lambda: hr.get_variable("w", []))
    with hr.variable_scope("outer"):
        x = hr.get_variable("x", [])
        w = template()
    assert template.variable_scope_name == "outer/"
    assert w.name == "outer//w:0"
    assert template.variables == [x, w]
