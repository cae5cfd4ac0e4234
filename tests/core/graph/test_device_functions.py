"""Device functions say where each operation of a block goes, as in TensorFlow 1.15."""

from __future__ import annotations

import threading

import pytest

import headrace as hr
from headrace.errors import NestingError, PlacementError


def _variables_on_ps(op: hr.Operation) -> str:
    return "/job:ps" if op.type == "VarHandle" else op.device


def test_a_function_is_asked_for_each_operation() -> None:
    with hr.device(_variables_on_ps):
        v = hr.Variable(1.0)
        y = hr.constant(2.0)
    assert v.device == "/job:ps"
    assert y.device == ""


# What a run of TensorFlow 1.15.5 gives, but for task 1, which it keeps though the job is another.
@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        (["/device:cpu:0", lambda op: ""], "/device:cpu:0"),
        (["/device:cpu:0", lambda op: "", "/device:cpu:1"], "/device:cpu:0"),
        (["/device:cpu:0", lambda op: op.device, "/device:cpu:1"], "/device:cpu:1"),
        (["/device:cpu:0", lambda op: "", None], ""),
        ([lambda op: "/job:g/device:cpu:1", "/job:x"], "/job:g/device:cpu:1"),
        (["/job:x/task:1", lambda op: "/job:g/device:cpu:1"], "/job:g/device:cpu:1"),
        ([lambda op: "/job:outer", lambda op: "/job:inner/device:cpu:1"], "/job:outer"),
    ],
)
def test_the_outer_of_two_has_the_last_word(blocks: list[object], expected: str) -> None:
    def build(rest: list[object]) -> hr.Tensor:
        if not rest:
            return hr.constant(1.0)
        with hr.device(rest[0]):
            return build(rest[1:])

    assert build(blocks).device == expected


def test_a_colocated_operation_is_not_asked_for() -> None:
    with hr.device("/device:cpu:0"):
        a = hr.constant(1.0)
    with hr.device(lambda op: "/device:cpu:1"), hr.colocate_with(a):
        b = hr.constant(2.0)
    with hr.colocate_with(b):
        c = hr.constant(3.0)
    # It is on the device of what it is beside.
    assert b.device == c.device == a.device == "/device:cpu:0"
    assert str(b.op.device_name) == ""


def test_bodies_of_loops_are_asked_for() -> None:
    seen = set()

    def note(op: hr.Operation) -> str:
        seen.add(op.type)
        return ""

    with hr.device(note):
        hr.while_loop(lambda i: i < 3, lambda i: i * 2, [1])
    assert {"Less", "Mul", "While"} & seen >= {"Less", "Mul"}


def test_an_answer_that_is_no_device_is_refused() -> None:
    with (
        hr.device(lambda op: 3),
        pytest.raises(PlacementError, match=r"(?s)must return the name of a device.*got 3 .*test_"),
    ):
        hr.constant(1.0)
    with pytest.raises(PlacementError, match="a device is named by a string"), hr.device(3):
        pass


def test_scopes_of_a_graph_apply_while_it_is_the_default_one() -> None:
    graph = hr.Graph()
    with (
        graph.as_default(),
        graph.device("/device:cpu:0"),
        graph.name_scope("a") as scope,
        graph.container("box"),
        graph.gradient_override_map({"Square": "Mine"}),
    ):
        x = hr.constant(1.0)
        with graph.control_dependencies([x]), graph.colocate_with(x):
            y = hr.square(x)
    assert scope == "a/"
    assert x.device == "/device:cpu:0"
    assert y.op.control_inputs == (x.op,)
    assert y.op.gradient_rule == "Mine"


def test_scopes_of_a_graph_apply_as_soon_as_it_is_the_default_one() -> None:
    graph, other = hr.Graph(), hr.Graph()
    with graph.as_default():
        first = hr.constant(1.0)
    with (
        graph.device("/device:cpu:0"),
        graph.name_scope("a") as scope,
        graph.container("box"),
        graph.gradient_override_map({"Square": "Mine"}),
        graph.control_dependencies([first]),
        other.as_default(),
    ):
        elsewhere = hr.constant(2.0)
        with graph.name_scope("b"), graph.as_default():
            y = hr.square(3.0)
        assert hr.get_default_graph() is other
        assert other.get_name_scope() == ""
        assert graph.get_name_scope() == "a"
    assert (scope, y.name, elsewhere.name) == ("a/", "a/b/Square:0", "Const:0")
    assert (y.device, elsewhere.device) == ("/device:cpu:0", "")
    assert y.op.control_inputs == [first.op]
    assert y.op.gradient_rule == "Mine"
    assert graph.get_name_scope() == ""
    with graph.as_default():
        assert hr.constant(1.0).device == ""


def test_scopes_of_a_program_apply_within_its_branches() -> None:
    graph = hr.Graph()
    with graph.as_default():

        def branch() -> hr.Tensor:
            with graph.name_scope("inside"), graph.device("/device:cpu:0"):
                made = hr.constant(1.0)
            assert made.name.endswith("inside/Const:0")
            assert made.device == "/device:cpu:0"
            return made

        hr.cond(hr.placeholder(hr.bool, []), branch, lambda: hr.constant(2.0))


def test_scopes_of_another_graph_are_left_in_order() -> None:
    graph, other = hr.Graph(), hr.Graph()
    with other.as_default():
        first = graph.name_scope("a")
        first.__enter__()
        second = graph.name_scope("b")
        second.__enter__()
        with pytest.raises(NestingError, match="a block of another graph is left before one"):
            first.__exit__(None, None, None)
        second.__exit__(None, None, None)


def test_blocks_that_ask_for_one_device_are_left_in_order() -> None:
    with hr.Graph().as_default():
        first, second = hr.device("/device:cpu:0"), hr.device("/device:cpu:0")
        first.__enter__()
        second.__enter__()
        with pytest.raises(NestingError, match="a block of device is left before one"):
            first.__exit__(None, None, None)
        second.__exit__(None, None, None)


def test_scopes_of_a_graph_apply_in_a_thread_that_has_no_graph_yet() -> None:
    graph, names = hr.Graph(), []

    def build() -> None:
        with graph.name_scope("a"):
            names.append(hr.get_default_graph() is graph)
            with graph.as_default():
                names.append(hr.constant(1.0).name)

    thread = threading.Thread(target=build)
    thread.start()
    thread.join()
    assert names == [False, "a/Const:0"]
