"""What names are made of: as in TensorFlow, letters, digits and a few other characters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import headrace as hr
from headrace.errors import GraphError

# Each gives a name to something.
NAMED: dict[str, Callable[[str], Any]] = {
    "constant": lambda name: hr.constant(1.0, name=name),
    "placeholder": lambda name: hr.placeholder(hr.float32, [], name=name),
    "operation": lambda name: hr.add(1.0, 2.0, name=name),
    "composite": lambda name: hr.nn.l2_normalize([1.0], 0, name=name),
    "variable": lambda name: hr.Variable(1.0, name=name),
    "get_variable": lambda name: hr.get_variable(name, []),
    "name_scope": lambda name: hr.name_scope(name).__enter__(),
    "variable_scope": lambda name: hr.variable_scope(name).__enter__(),
    "branch": lambda name: hr.cond(hr.constant(True), lambda: 1.0, lambda: 2.0, name=name),
    "loop": lambda name: hr.while_loop(lambda i: i < 1, lambda i: i + 1, [0], name=name),
    "within": lambda name: hr.constant(1.0, name=f"a/{name}"),
}

REFUSED = (
    "a b",
    " a",
    "a b/",
    "a\\b",
    "a>b",
    "a+b",
    "a,b",
    "a\nb",
    "a\x00",
    "caf\xe9",
    "\u4f60",
    "a[0]",
)
TAKEN = ("a", "a-b", "a.b", "a/b", ".a", "1", "A_b", "a/_b", "a" * 200)


@pytest.mark.parametrize("name", REFUSED, ids=ascii)
@pytest.mark.parametrize("what", NAMED)
def test_other_characters_are_refused(what: str, name: str) -> None:
    with (
        hr.Graph().as_default(),
        pytest.raises(GraphError, match="a name has letters without accents, digits and the char"),
    ):
        NAMED[what](name)


@pytest.mark.parametrize("name", TAKEN)
@pytest.mark.parametrize("what", NAMED)
def test_those_are_taken(what: str, name: str) -> None:
    with hr.Graph().as_default() as graph:
        made = NAMED[what](name)
        if what == "constant":
            assert made.name == f"{name}:0"
            assert graph.get_tensor_by_name(f"{name}:0") is made
