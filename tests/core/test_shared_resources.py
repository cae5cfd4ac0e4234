"""What shares a name in a container is declared alike, or refused with both lines."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import PluginError, ResourceError
from headrace.extend import KernelTable
from headrace.runtime.state.containers import Container, Declaration

pytestmark = pytest.mark.needs("backend-cpu")


@pytest.fixture(autouse=True)
def empty_box():
    yield
    hr.reset_containers("box")


def boxed(value, shape=None):
    """A program with a variable that all programs share: its graph, and ways to use it."""
    with hr.Graph() as graph, hr.container("box"):
        variable = hr.Variable(value, name="shared", validate_shape=shape is None)
        uses = {
            "read": variable.value(),
            "assign": variable.initializer,
            "ask": hr.is_variable_initialized(variable),
        }
    return graph, uses


def run(graph, *fetches):
    with hr.Session(graph=graph) as session:
        return [session.run(fetch) for fetch in fetches]


@pytest.mark.parametrize("executor", ["plan", "plain"])
@pytest.mark.parametrize(
    ("mine", "theirs", "difference"),
    [
        (np.float32([1, 2]), np.float64([1, 2]), "dtype float32 and float64"),
        (np.float32([1, 2]), np.float32([1, 2, 3]), r"shape \[2\] and \[3\]"),
        (np.float32([1, 2]), np.float32(1), r"shape \[2\] and \[\]"),
        (
            np.float32([1, 2]),
            np.int32([[1, 2]]),
            r"dtype float32 and int32, shape \[2\] and \[",
        ),
        (np.float32(1), b"text", "dtype float32 and string"),
    ],
)
def test_a_variable_that_is_declared_otherwise_is_refused(mine, theirs, difference, executor):
    first, variable = boxed(mine)
    second, other = boxed(theirs)
    config = hr.Config(executor=executor)
    with hr.Session(graph=first, config=config) as session:
        session.run(variable["assign"])
    for use in other.values():
        with (
            hr.Session(graph=second, config=config) as session,
            pytest.raises(ResourceError, match=rf"'shared' is declared in two ways: {difference}"),
        ):
            session.run(use)
    # The first one is as it was.
    np.testing.assert_array_equal(run(first, variable["read"])[0], mine)


def test_both_lines_are_named():
    first, variable = boxed(1.0)
    second, other = boxed([1, 2])
    run(first, variable["assign"])
    with pytest.raises(ResourceError, match=r"first at .*shared_resources.py:\d+: .*\n  now at .*"):
        run(second, other["assign"])


UPDATES = {
    "assign": lambda v: hr.assign(v, np.zeros(3), validate_shape=False),
    "assign_add": lambda v: hr.assign_add(v, np.ones(3)),
    "assign_sub": lambda v: hr.assign_sub(v, np.ones(3)),
    "scatter_add": lambda v: hr.scatter_add(v, [0], np.ones(1)),
    "scatter_update": lambda v: hr.scatter_update(v, [2], np.ones(1)),
    "part": lambda v: hr.assign(v[1:], np.ones(2)),
    "gather": lambda v: hr.gather(v, [0]),
    "condition": lambda v: hr.cond(hr.constant(True), lambda: v + 1.0, lambda: v + 2.0),
    "loop": lambda v: hr.while_loop(lambda i: i < 2.0, lambda i: i + v[0] + 9.0, [0.0]),
    "function": lambda v: hr.function(lambda: v * 2.0)(),
}


@pytest.mark.parametrize("executor", ["plan", "plain"])
@pytest.mark.parametrize("name", UPDATES)
def test_every_path_to_the_variable_compares(name, executor):
    first, variable = boxed(np.float64([1, 2]))
    with hr.Graph() as second, hr.container("box"):
        use = UPDATES[name](hr.Variable(np.float32([1, 2, 3]), name="shared"))
    run(first, variable["assign"])
    with (
        hr.Session(graph=second, config=hr.Config(executor=executor)) as session,
        pytest.raises(ResourceError, match=r"'shared' is declared in two ways: ") as refused,
    ):
        session.run(use)
    text = str(refused.value)
    assert "dtype float64 and float32, shape [2] and [3]" in text
    assert text.count("test_shared_resources.py:") >= 2
    assert len(text.splitlines()) <= 12
    np.testing.assert_array_equal(run(first, variable["read"])[0], [1, 2])


def test_who_knows_less_of_the_shape_shares_the_variable():
    first, variable = boxed(np.float32([1, 2]))
    second, other = boxed(np.float32([3, 4]), shape=[None])
    run(first, variable["assign"])
    assert run(second, other["read"])[0].tolist() == [1, 2]


def test_after_a_reset_it_may_be_declared_anew():
    first, variable = boxed(np.float32([1, 2]))
    second, other = boxed(np.int32(7))
    run(first, variable["assign"])
    hr.reset_containers("box")
    assert run(second, other["assign"], other["read"])[1] == 7
    with pytest.raises(ResourceError, match="dtype int32 and float32"):
        run(first, variable["read"])


def test_a_reset_by_itself_changes_no_declaration():
    first, variable = boxed(np.float32([1, 2]))
    run(first, variable["assign"])
    hr.reset_containers("box")
    run(first, variable["assign"])
    second, other = boxed(np.int32(7))
    with pytest.raises(ResourceError, match="dtype float32 and int32"):
        run(second, other["assign"])


@pytest.mark.parametrize(
    ("attrs", "expected"),
    [
        ({"n": 3, "x": 1.0}, []),
        ({"n": 4, "x": 1.0}, ["n 3 and 4"]),
        # Python's 1 == 1.0 == True are not the same to an op.
        ({"n": True, "x": 1}, ["n 3 and True", "x 1.0 and 1"]),
    ],
)
def test_declarations_differ_by_attributes(attrs, expected):
    mine = Declaration("Box", {"n": 3, "x": 1.0}, "a.py:1")
    assert mine.differences(Declaration("Box", attrs, "b.py:2")) == expected
    assert mine.differences(Declaration("Jar", attrs, "b.py:2")) == ["Box and Jar"]


def test_what_is_not_declared_is_told_apart_by_its_class():
    container = Container()
    made = container.get_or_create("a", dict, dict)
    assert container.get_or_create("a", dict, dict) is made
    with pytest.raises(ResourceError, match="'a' is a dict, expected a list"):
        container.get_or_create("a", list, list)


class NoReset:
    def __init__(self, name):
        self.name = name


class Reset(NoReset):
    def reset(self):
        self.name = ""


@pytest.mark.parametrize(
    ("op", "cls", "match"),
    [
        ("NoSuchOp", Reset, "no op 'NoSuchOp' is declared"),
        ("Mutex", NoReset, r"NoReset has no method reset\(\)"),
        ("Sin", Reset, "must have the attributes container and shared_name, and no inputs"),
    ],
)
def test_a_class_that_cannot_be_a_resource_is_refused(op, cls, match):
    with pytest.raises(PluginError, match=match):
        KernelTable().resource(op)(cls)
