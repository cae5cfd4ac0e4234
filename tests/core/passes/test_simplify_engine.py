"""What the simplifier keeps around its rules: effects, order, places, names; and how it ends."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import headrace as hr
from headrace.graph.creation_site import Site
from headrace.passes.prune import extract
from headrace.passes.rewrites import Rewrite
from headrace.passes.simplify.engine import simplify
from headrace.passes.simplify.rules import RuleTable
from headrace.passes.simplify.table import RULES
from headrace.passes.step_graph import StepGraph, verify


def types(step: StepGraph) -> Counter:
    verify(step)
    return Counter(op.type for op in step.graph.operations)


def reaches(step: StepGraph, start: str, end: str) -> bool:
    """Whether an operation of the type ``end`` depends on one of the type ``start``."""
    after = set()
    for op in step.graph.operations:
        before = [t.op for t in op.inputs] + list(op.control_inputs)
        if op.type == start or any(b in after for b in before):
            after.add(op)
            if op.type == end:
                return True
    return False


def test_it_reports_what_was_rewritten_and_where():
    x = hr.placeholder("float32", [2], name="x")
    y = hr.negative(-(hr.identity(x) * 1.0), name="y")
    new, rewrites = simplify(extract([x], [y], []))
    assert types(new) == {"Feed": 1}
    assert [r.rule for r in rewrites] == ["identity", "multiply-one", "double-negation"]
    last = rewrites[-1]
    assert last.ops == ("y", "Neg")
    assert last.site == y.op.site
    assert str(last).startswith("double-negation: y and 1 more (applied twice")
    assert new.fetches == new.feeds


def test_without_rewrites_the_graph_stays_as_it_is():
    x = hr.placeholder("float32", [2])
    with hr.name_scope("scope"):
        y = hr.exp(x) - hr.tanh(x)
    step = extract([x], [y], [])
    new, rewrites = simplify(step)
    assert not rewrites
    assert [(op.name, op.origin, op.site) for op in new.graph.operations] == [
        (op.name, op.origin, op.site) for op in step.graph.operations
    ]


def test_new_nodes_bear_the_name_of_what_they_replace():
    x = hr.placeholder("float32", [2])
    y = hr.log(hr.nn.softmax(x), name="scores")
    new, _ = simplify(extract([x], [y, hr.nn.softmax(x)], []))
    made = new.fetches[0].op
    assert (made.name, made.type, made.origin) == ("scores", "LogSoftmax", "log-softmax")
    assert made.site == y.op.site


def test_effects_come_about_although_their_results_are_not_needed():
    v = hr.Variable(np.int32([1, 2]))
    zero = hr.assign_add(v, [1, 1]) * 0
    new, _ = simplify(extract([], [zero], []))
    assert types(new)["AssignAddVariable"] == 1
    assert reaches(new, "AssignAddVariable", "Mul")


def test_the_shape_of_a_result_with_an_effect_waits_for_the_effect():
    v = hr.Variable([1.0, 2.0])
    size = hr.size(hr.assign_add(v, [1.0, 1.0]))
    new, _ = simplify(extract([], [size], []))
    assert reaches(new, "AssignAddVariable", "Size")


def test_effects_reach_what_they_reached_on_another_way():
    v = hr.Variable([1.0, 2.0])
    written = hr.assign_add(v, [1.0, 1.0])
    y = hr.reshape(written, hr.shape(written))
    new, rewrites = simplify(extract([], [y], []))
    assert "Reshape" not in types(new)
    assert reaches(new, "AssignAddVariable", "AssignAddVariable")
    assert "reshape-nothing" in {r.rule for r in rewrites}


def test_what_waits_for_a_node_waits_for_what_the_node_waited_for():
    v = hr.Variable(1.0)
    written = hr.assign_add(v, 1.0)
    with hr.control_dependencies([hr.identity(hr.identity(written))]):
        read = hr.identity(v.read_value())
    new, rewrites = simplify(extract([], [read], []))
    assert rewrites
    assert reaches(new, "AssignAddVariable", "ReadVariable")


def test_nodes_that_wait_are_rewritten_and_wait_on():
    x = hr.placeholder("float32", [2])
    v = hr.Variable(1.0)
    with hr.control_dependencies([hr.assign_add(v, 1.0)]):
        y = hr.tanh(x) * hr.cast(x, "float32")
        z = hr.reshape(x, [2])
        w = hr.pow(x, 2.0)
    new, rewrites = simplify(extract([x], [y, z, w], []))
    assert {r.rule for r in rewrites} >= {"reshape-nothing"}
    for fetch in new.fetches:
        assert [c.type for c in fetch.op.control_inputs] == ["AssignAddVariable"]
    assert new.fetches[1].op.type == "Identity"


def test_a_node_that_waits_is_not_looked_through():
    x = hr.placeholder("float32", [2])
    v = hr.Variable(1.0)
    with hr.control_dependencies([hr.assign_add(v, 1.0)]):
        negated = -x
    new, rewrites = simplify(extract([x], [-negated], []))
    assert not rewrites
    assert types(new)["Neg"] == 2


def test_dead_branches_stay_dead():
    x = hr.placeholder("int32", [2])
    taken, _ = hr.switch(x, hr.placeholder("bool", [], name="p"))
    p = x.graph.get_tensor_by_name("p:0")
    new, _ = simplify(extract([x, p], [taken * 0, hr.shape(taken)], []))
    assert types(new)["Switch"] == 1
    assert reaches(new, "Switch", "Mul")
    assert reaches(new, "Switch", "Shape")


def test_targets_and_fixed_operations_stay():
    x = hr.placeholder("float32", [2])
    kept, target = hr.identity(x), hr.identity(x, name="target")
    step = extract([x], [kept + 1.0], [target.op])
    fixed = [op for op in step.graph.operations if op.name == kept.op.name]
    new, rewrites = simplify(step, fixed)
    assert types(new)["Identity"] == 2
    assert not rewrites
    assert [op.name for op in new.targets] == ["target"]


def test_a_copy_to_a_requested_device_stays():
    x = hr.placeholder("float32", [2])
    with hr.device("/cpu:1"):
        y = hr.identity(x)
        z = hr.negative(-y)
    new, _ = simplify(extract([x], [y, z], []))
    assert types(new)["Identity"] == 1
    assert new.fetches[0] == new.fetches[1]
    assert new.fetches[0].op.device == "/device:cpu:1"


def test_equal_nodes_are_recognised_as_such():
    x = hr.placeholder("float32", [2])
    y = hr.exp(x) * hr.exp(x)
    z = (x + 2.0) - (2.0 + x)
    new, rewrites = simplify(extract([x], [y, z], []))
    assert {r.rule for r in rewrites} == {"multiply-itself"}
    assert types(new) == {"Feed": 1, "Exp": 1, "Square": 1, "Const": 1, "Add": 1, "Sub": 1}


def test_dead_code_is_left_out():
    x = hr.placeholder("float32", [2])
    step = extract([x], [hr.exp(x), hr.tanh(x)], [])
    fewer = StepGraph(step.graph, step.feeds, step.fetches[:1], ())
    assert types(simplify(fewer)[0]) == {"Feed": 1, "Exp": 1}


def test_rules_that_undo_each_other_come_to_an_end():
    table = RuleTable()
    table.add("there", "Exp", reason="for the test")(lambda n, d: d.add("Tanh", n.inputs[0]))
    table.add("back", "Tanh", reason="for the test")(lambda n, d: d.add("Exp", n.inputs[0]))
    x = hr.placeholder("float32", [2])
    new, rewrites = simplify(extract([x], [hr.exp(x)], []), rules=table)
    assert 1000 <= len(rewrites) <= 1100
    verify(new)


def test_shapes_that_a_rule_gets_wrong_are_left_for_the_step_to_report():
    table = RuleTable()

    def square(node, draft):
        x = node.inputs[0]
        return draft.add("MatMul", x, x, transpose_a=False, transpose_b=False)

    table.add("wrong", "Tanh", reason="for the test")(square)
    x = hr.placeholder("float32", [2, 3])
    step = extract([x], [hr.tanh(x)], [])
    new, rewrites = simplify(step, rules=table)
    assert not rewrites
    assert types(new) == types(step)


@pytest.mark.parametrize("count", [2000])
def test_long_chains_and_many_users_need_no_recursion(count):
    x = hr.placeholder("float32", [2])
    y = x
    for i in range(count):
        y = hr.identity(y) if i % 3 else hr.negative(-y)
    sums = [hr.reshape(x, [2]) + float(i) for i in range(500)]
    new, rewrites = simplify(extract([x], [y, *sums], []))
    assert len(rewrites) >= count // 2
    assert types(new) == {"Feed": 1, "Const": 500, "Add": 500}
    assert new.fetches[0] == new.feeds[0]


def test_the_work_grows_in_proportion_to_the_graph():
    def looks(count: int) -> int:
        seen = 0
        table = RuleTable(RULES)

        def look(node, draft):
            nonlocal seen
            seen += 1

        table.add("count", "Tanh", "Neg", "Mul", reason="for the test")(look)
        with hr.Graph().as_default():
            x = hr.placeholder("float32", [2])
            y = x
            for _ in range(count):
                y = hr.negative(-hr.tanh(y)) * 1.0 + x * 2.0
            simplify(extract([x], [y], []), rules=table)
        return seen

    small, large = looks(20), looks(200)
    assert large <= 11 * small


def test_rewrites_are_values():
    first = Rewrite("rule", "reason", ("a",), Site("file", 1))
    assert first == Rewrite("rule", "reason", ("a",), Site("file", 1))
    assert str(first).startswith("rule: a (reason) at file:1")
