"""Facts that a declaration states: a stranger's op states them to the same effect as our own."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.cli import ops as cli_ops
from headrace.errors import DeterminismError, PluginError
from headrace.extend import (
    OPS,
    Anything,
    Floating,
    Index,
    Numeric,
    Resource,
    Spec,
    TensorSpec,
    as_shape,
    op,
)
from headrace.graph.function import functions_of
from headrace.graph.spec import handle_spec
from headrace.passes.common_subexpressions import dedupe
from headrace.passes.constant_folding import MAX_REPEATED_ELEMENTS, fold
from headrace.passes.loop_invariants import hoist_invariants
from headrace.passes.prune import extract, prune
from headrace.passes.simplify.engine import simplify
from headrace.runtime.planning.determinism import refuse_chance
from headrace.shapes import Shape


@op("FactMeet", elementwise=True, commutative=True)
def meet(x: Numeric, y: Numeric) -> Spec:
    """Computes the same in either order."""
    return x


@op("FactAfter", elementwise=True)
def after(x: Numeric, y: Numeric) -> Spec:
    """Does not."""
    return x


@op("FactStore", effects="reads")
def store() -> Spec:
    """A handle."""
    return handle_spec(TensorSpec(hr.float32, Shape([2])))


@op("FactPeek", effects="reads")
def peek(resource: Resource) -> Spec:
    """Reads what is in the store."""
    return resource.content


@op("FactPut", stateful=True)
def put(resource: Resource, value: Anything) -> Spec:
    """Changes it."""
    return value


@op("FactRoll", effects="draws")
def roll(size: Index, *, seeds: tuple[int, int] | None = None) -> Spec:
    """Draws."""
    return TensorSpec(hr.float32, as_shape(size))


@op("FactWeather", effects="observes")
def weather() -> Spec:
    """Looks out of the window."""
    return TensorSpec(hr.float32, Shape([]))


@op("FactDance", effects=["draws", "changes"])
def dance(*, seeds: tuple[int, int] | None = None) -> Spec:
    """Draws, and moves on."""
    return TensorSpec(hr.float32, Shape([]))


@op("FactWallpaper", repeats=True, host_inputs=["count"])
def wallpaper(x: Floating, count: Index) -> Spec:
    """Repeats."""
    return x.with_shape(as_shape(count))


@op("FactNorm", elementwise=True, nonnegative=True)
def norm(x: Floating) -> Spec:
    """Never negative."""
    return x


@op("FactCertain", total=True)
def certain(x: Floating) -> Spec:
    """Fails for nothing."""
    return x


@op("FactDoubtful")
def doubtful(x: Floating) -> Spec:
    """May fail."""
    return x


@op("FactHeap", accumulates=True)
def heap(x: Numeric) -> Spec:
    """Adds up."""
    return x.with_shape([])


def types(step):
    return sorted(operation.type for operation in step.graph.operations)


def count(step, kind):
    return types(step).count(kind)


@pytest.mark.parametrize(("make", "left"), [(meet, 1), (after, 2)])
def test_a_commutative_op_is_merged_with_its_mirror_image(make, left):
    x, y = hr.placeholder("float32", [2]), hr.placeholder("float32", [2])
    step = extract([x, y], [make(x, y), make(y, x)], [])
    assert count(dedupe(step), make.schema.type) == left
    simplified, _ = simplify(step)
    assert count(simplified, make.schema.type) == left


def test_equal_reads_are_merged_until_something_changes():
    kept = store()
    first, second = peek(kept), peek(kept)
    put(kept, first)
    third = peek(kept)
    changed = kept.graph.get_operations()[-2]
    assert changed.type == "FactPut"
    step = dedupe(extract([], [first, second, third], [changed]))
    assert count(step, "FactPeek") == 2


def test_handles_are_not_merged():
    # What a handle stands for may bear the node's own name.
    step = dedupe(extract([], [peek(store()), peek(store())], []))
    assert count(step, "FactStore") == 2


EFFECTS = {
    "observes": weather,
    "draws": lambda: roll([3]),
    "reads": lambda: peek(store()),
    "changes": lambda: put(store(), [1.0, 2.0]),
    "draws-and-changes": dance,
}


@pytest.mark.parametrize("effect", sorted(EFFECTS.keys() - {"reads"}))
def test_what_has_another_effect_is_not_merged(effect):
    one, other = EFFECTS[effect](), EFFECTS[effect]()
    assert count(dedupe(extract([], [one, other], [])), one.op.type) == 2


@pytest.mark.parametrize("effect", EFFECTS)
def test_what_has_an_effect_is_not_folded(effect):
    y = norm(EFFECTS[effect]())
    step = fold(extract([], [y], []), lambda operation, values: [np.zeros(2, np.float32)])
    assert count(step, "FactNorm") == 1


def without_use(effect):
    """Return a step in which nothing but the shape of a value is needed, simplified."""
    x = hr.placeholder("float32", [])
    lost = EFFECTS[effect]()
    shape = hr.shape(lost)
    step, _ = simplify(extract([x], [shape, x], []))
    return prune(step)


@pytest.mark.parametrize("effect", EFFECTS)
def test_what_only_reads_draws_or_observes_need_not_run(effect):
    kinds = types(without_use(effect))
    own = {"FactWeather", "FactRoll", "FactPeek", "FactPut", "FactDance"}
    assert sum(kind in own for kind in kinds) == ("changes" in effect)


def test_what_repeats_is_not_folded_unless_it_is_small():
    large = MAX_REPEATED_ELEMENTS + 1

    def evaluate(operation, values):
        return [np.broadcast_to(values[0], tuple(values[1]))]

    def folded(size):
        step = fold(extract([], [wallpaper([1.5], [size])], []), evaluate)
        return count(step, "FactWallpaper") == 0

    assert folded(4)
    assert not folded(large)


def test_zero_added_to_what_is_never_negative_goes_away():
    x = hr.placeholder("float32", [2])

    def left(y):
        return count(simplify(extract([x], [y], []))[0], "Add")

    assert left(norm(x) + 0.0) == 0
    assert left(after(x, x) + 0.0) == 1


@pytest.mark.parametrize(("make", "outside"), [(certain, 1), (doubtful, 0)])
def test_what_is_total_moves_out_of_loops(make, outside):
    x = hr.placeholder("float32", [2])
    found = hr.while_loop(lambda y: hr.reduce_sum(y) < 1.0, lambda y: y + make(x), [x])
    step = hoist_invariants(extract([x], [hr.nest.flatten(found)[0]], []))
    assert count(step, make.schema.type) == outside


class Loose:
    """A device whose sums are in no order."""

    name = "/device:loose:0"
    unordered_sums = True


class Strict(Loose):
    unordered_sums = False


def test_sums_are_refused_where_a_device_leaves_their_order_to_chance():
    x = hr.placeholder("float32", [2])
    total, whole = heap(x, name="total"), heap(hr.placeholder("int32", [2]))
    here = total.op.device_name
    refuse_chance([total.op], {here: Strict()})
    refuse_chance([whole.op, after(x, x).op], {here: Loose()})
    with pytest.raises(DeterminismError, match="refuses FactHeap 'total': it adds up in an order"):
        refuse_chance([total.op], {here: Loose()})


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: roll([3], name="mine"), "FactRoll 'mine': it draws .* no seed"),
        (lambda: dance(name="mine"), "FactDance 'mine': it draws .* no seed"),
        (lambda: weather(name="mine"), "FactWeather 'mine': it observes .*; feed"),
    ],
    ids=["draws", "draws-and-changes", "observes"],
)
def test_chance_is_refused(make, why):
    found = make().op
    with pytest.raises(DeterminismError, match=why):
        refuse_chance([found], {found.device_name: Strict()})


def test_a_seed_will_do():
    found = roll([3], seeds=(1, 2)).op
    refuse_chance([found], {found.device_name: Strict()})


def test_traced_functions_run_what_changes_something_and_not_what_reads():
    @hr.function
    def traced(x):
        kept = store()
        peek(kept)
        roll([3])
        put(kept, x)
        return x * 2.0

    y = traced(hr.placeholder("float32", [2]))
    (function,) = functions_of(y.op)
    (result,) = function.results
    assert [operation.type for operation in result.op.control_inputs] == ["FactPut"]


REFUSED = {
    "effect": ({"effects": "reeds"}, r"effects are 'reads', 'draws', .* got 'reeds'"),
    "both": (
        {"stateful": True, "effects": "reads"},
        "stateful=True is short for effects='changes'",
    ),
    "host": ({"host_inputs": ["shape"]}, r"host_inputs is a list of names .* \(x, y\), got"),
    "text": ({"host_inputs": "x"}, r"host_inputs is a list of names .* got 'x'"),
    "alias": ({"aliases": ["z"]}, r"aliases is a list of names .* \(x, y\), got \['z'\]"),
    "dead": ({"may_be_dead": True}, "only ops of the runtime itself may be dead"),
    "certain": (
        {"total": True, "effects": "draws"},
        r"what is total may be computed .* has effects \(draws\); drop total=True",
    ),
    "hasty": ({"total": True, "blocking": True}, "and the op may wait; drop total=True"),
    "reach": ({"reaches": "x"}, "reaches is one of 'files', 'python' or empty, got 'x'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_facts_that_cannot_be_are_refused(case):
    facts, message = REFUSED[case]
    with pytest.raises(PluginError, match=message):

        @op("FactWrong", **facts)
        def wrong(x: Floating, y: Floating) -> Spec:
            """Wrong."""
            return x

    assert OPS.get("FactWrong") is None


def test_one_input_cannot_commute():
    with pytest.raises(
        PluginError, match="'FactOne' is commutative, so it takes two tensors, got 1"
    ):

        @op("FactOne", commutative=True)
        def one(x: Floating) -> Spec:
            """One."""
            return x


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("FactMeet", ["elementwise", "commutative"]),
        ("FactPut", ["changes state or", "may keep its inputs"]),
        ("PyFunc", ["changes state or", "calls Python of the process"]),
        ("FactPeek", ["reads state"]),
        ("FactDance", ["draws random numbers", "changes state or"]),
        ("FactWallpaper", ["repeats elements", "kernels get count on the host"]),
        ("FactNorm", ["never negative"]),
        ("FactCertain", ["never fails where shapes are known"]),
        ("FactHeap", ["adds up what meets"]),
        ("Cast", ["share the memory of x"]),
        ("Reshape", ["a view", "kernels get shape on the host"]),
        ("Switch", ["may be dead", "run by the runtime"]),
    ],
)
def test_the_command_tells_all_facts(name, facts, capsys):
    cli_ops.run(name)
    out = capsys.readouterr().out
    assert all(fact in out for fact in facts), out
