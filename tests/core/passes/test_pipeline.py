"""The passes as a pipeline: where it runs, and what plugins add to it."""

from __future__ import annotations

from importlib.metadata import entry_points

import numpy as np
import pytest

import headrace as hr
from headrace.errors import PluginError
from headrace.extend import hookimpl
from headrace.extend.passes import (
    PassRegistry,
    Rewriter,
    RuleTable,
    Stage,
    StepGraph,
    inner,
)
from headrace.passes.pipeline import PASSES
from headrace.plugins import host as host_module
from headrace.plugins.host import PluginHost
from headrace.testing import ConformanceError, check_rule, rule_case

pytestmark = pytest.mark.needs("backend-cpu")

RULES = RuleTable()
REASON = "the sine is odd, exactly"


@RULES.add("sine-of-negated", "Sin", reason=REASON, after=["Neg"])
def _sine_of_negated(node, replacement):
    negated = inner(node.inputs[0], "Neg")
    if negated is None:
        return None
    return replacement.add("Neg", replacement.add("Sin", negated.inputs[0]))


def rule(match, *ops, name="a-rule", reason="for a test"):
    table = RuleTable()
    table.add(name, *ops, reason=reason)(match)
    return table


@pytest.fixture
def fancy(monkeypatch, fake_entry):
    """Let a plugin called fancy register passes with the given function, beside real plugins."""

    def install(register) -> PluginHost:
        class Fancy:
            @hookimpl
            def headrace_register_passes(self, registry: PassRegistry) -> None:
                register(registry)

        real = [e for e in entry_points(group="headrace") if e.name == "cpu"]
        plugins = PluginHost([*real, fake_entry("fancy", Fancy())])
        monkeypatch.setattr(host_module, "_HOST", plugins)
        return plugins

    return install


def sines():
    x = hr.placeholder("float32", [3], name="x")
    return x, hr.sin(-x, name="y")


def run(fetch, feed=None, **config):
    with hr.Session(config=hr.Config(verify=True, **config)) as session:
        return session.run(fetch, feed)


# -- what core runs


def test_stages_are_as_the_architecture_says() -> None:
    found = {stage: [p.name for p in PASSES if p.stage is stage] for stage in Stage}
    assert found == {
        "inline": ["inline-calls", "trim-unread"],
        "whole": [
            "fold",
            "free-constants",
            "dedupe",
            "choose-branches",
            "trim-loops",
            "batch-sums",
            "hoist-invariants",
            "prune",
        ],
        "region": ["dedupe", "narrow-products", "simplify", "prune"],
    }


# -- rules of plugins


def test_a_plugin_s_rule_applies_and_explanations_name_the_plugin(fancy) -> None:
    fancy(lambda registry: registry.add_rules(RULES))
    x, y = sines()
    with hr.Session() as session:
        explanation = session.explain(y, {x: np.ones(3, "f")})
        np.testing.assert_allclose(session.run(y, {x: [0, 1, 2]}), np.sin([0, -1, -2]), rtol=1e-6)
    (rewrite,) = explanation.rewrites
    assert (rewrite.rule, rewrite.plugin) == ("sine-of-negated", "fancy")
    line = f"rewritten: 1 x sine-of-negated by plugin 'fancy', first 'y': {REASON}"
    assert line in str(explanation)


def test_both_halves_of_a_plugin_s_rule_are_checked(fancy) -> None:
    fancy(lambda registry: registry.add_rules(RULES))
    check_rule(rule_case("sine-of-negated", lambda x: hr.sin(-x), "Neg(Sin(x))"))


@pytest.mark.parametrize(
    ("match", "expected", "match_error"),
    [
        (lambda node, new: None, "Cos(x)", r"'a-rule' \(a-rule\): it does not apply; no rule did"),
        (lambda node, new: node.inputs[0], "Tan(x)", r"expected Tan\(x\), got x"),
        (
            lambda node, new: node.inputs[0],
            "x",
            r"(?s)the result changes at \[0, 0\]: .*before.*for x = \[\[",
        ),
        (
            lambda node, new: new.add("Cos", new.add("Neg", node.inputs[0])),
            "Cos(Neg(x))",
            r"expected Cos\(Neg\(x\)\), got Cos\(x\)",
        ),
    ],
    ids=["never", "another", "wrong", "undone"],
)
def test_wrong_rules_are_found_out(fancy, match, expected, match_error) -> None:
    fancy(lambda registry: registry.add_rules(rule(match, "Cos")))
    with pytest.raises(ConformanceError, match=match_error):
        check_rule(rule_case("a-rule", lambda x: hr.cos(x), expected))


def test_rules_that_undo_each_other_are_found_out(fancy) -> None:
    def register(registry) -> None:
        for ours, theirs in (("Cos", "Cosh"), ("Cosh", "Cos")):

            def swap(node, replacement, theirs=theirs):
                return replacement.add(theirs, node.inputs[0])

            registry.add_rules(rule(swap, ours, name=f"no-{ours.lower()}"))

    fancy(register)
    with pytest.raises(ConformanceError, match=r"so that rules do not come to an end"):
        check_rule(rule_case("no-cos", lambda x: hr.cos(x), "Cos(x)"))


def raises(node, replacement):
    raise KeyError("forgotten")


@pytest.mark.parametrize(
    ("match", "message"),
    [
        (raises, "KeyError: 'forgotten'"),
        (lambda node, new: 7, "a rule returns a Value for each output, or None; got int"),
        (lambda node, new: (node.inputs[0],) * 2, "it returns 2 values for 1 outputs"),
        (
            lambda node, new: new.constant(1, hr.int32),
            r"it returns int32\[\] for an output that is float32\[3\]",
        ),
    ],
)
def test_a_rule_that_fails_is_blamed_on_its_plugin(fancy, match, message) -> None:
    fancy(lambda registry: registry.add_rules(rule(match, "Sin")))
    x, y = sines()
    with pytest.raises(PluginError, match=message) as caught:
        run(y, {x: [1, 2, 3]})
    text = str(caught.value)
    assert "rewrite rule 'a-rule' on Sin 'y' failed" in text
    assert "plugin 'fancy'" in text
    assert f"test_pipeline.py:{y.op.site.line}" in text
    assert run(y, {x: [0, 0, 0]}, optimize=False).tolist() == [0, 0, 0]


# -- passes of plugins


def without_checks(step: StepGraph, context) -> StepGraph:
    """Drop the operations that check numbers."""
    if all(op.type != "CheckNumerics" for op in step.graph.operations):
        return step
    rewriter = Rewriter("without-checks")
    for op in step.graph.operations:
        if op.type == "CheckNumerics":
            rewriter.stand_for_tensor(op.outputs[0], rewriter.tensor(op.inputs[0]))
        else:
            rewriter.copy(op)
    return rewriter.finish(step)


@pytest.mark.parametrize("stage", ["whole", "region"])
def test_a_plugin_s_pass_rewrites_steps_and_explanations_name_it(fancy, stage) -> None:
    fancy(lambda registry: registry.add_pass(stage, without_checks))
    x = hr.placeholder("float32", [2])
    y = hr.check_numerics(x, "no number", name="checked") + 1
    assert np.isnan(run(y, {x: [np.nan, 1]})[0])
    with hr.Session() as session:
        explanation = session.explain(y)
    (rewrite,) = [r for r in explanation.rewrites if r.plugin]
    assert (rewrite.rule, rewrite.plugin, rewrite.ops) == ("without-checks", "fancy", ("checked",))
    assert (rewrite in explanation.whole) == (stage == "whole")
    assert "rewritten: 1 x without-checks by plugin 'fancy', first 'checked'" in str(explanation)
    with pytest.raises(hr.errors.HeadraceError, match="no number"):
        run(y, {x: [np.nan, 1]}, optimize=False)


def test_passes_of_plugins_run_on_steps_functions_and_regions_alike(fancy) -> None:
    seen: dict[str, set[str]] = {stage: set() for stage in Stage}

    def register(registry) -> None:
        for stage in Stage:
            # A function of its own for each stage.
            def look(step, context, stage=stage):
                assert context.stage is stage
                seen[stage].update(op.type for op in step.graph.operations)
                return step

            registry.add_pass(stage, look, name=f"look-{stage}")

    fancy(register)
    x = hr.placeholder("float32", [None])
    looped = hr.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, hr.tan(v)), [0, x])[1]
    chosen = hr.cond(hr.reduce_sum(looped) > 0, lambda: hr.cosh(looped), lambda: looped)
    run(hr.atan(chosen), {x: [0.5]})
    for stage in Stage:
        assert {"Tan", "Cosh", "Atan"} <= seen[stage], stage
    before = {stage: set(types) for stage, types in seen.items()}
    run(hr.sinh(x), {x: [0.5]}, optimize=False)
    new = {str(stage) for stage in Stage if seen[stage] != before[stage]}
    assert new == {"inline"}


def broken(step, context):
    raise RuntimeError("out of ideas")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (broken, "RuntimeError: out of ideas"),
        (lambda step, context: None, "must return a StepGraph[^\n]*; got NoneType"),
        (
            lambda step, context: StepGraph(step.graph, step.feeds, (), step.targets),
            "it has 0 fetches, the step has 1",
        ),
        (
            lambda step, context: StepGraph(step.graph, (), step.fetches, step.targets),
            "it has 0 feeds, the step has 1",
        ),
        (
            lambda step, context: StepGraph(
                step.graph, step.feeds, (step.graph.operations[0].outputs[0],), ()
            ),
            r"int32\[3\] stands for 'y:0', which is float32\[3\]",
        ),
        (
            lambda step, context: StepGraph(hr.Graph(), step.feeds, step.fetches, ()),
            "is not in the step's graph",
        ),
    ],
)
def test_a_pass_that_fails_is_blamed_on_its_plugin(fancy, function, message) -> None:
    fancy(lambda registry: registry.add_pass("whole", function, name="a-pass"))
    x = hr.placeholder("int32", [3])
    y = hr.sin(hr.cast(x, "float32"), name="y")
    with pytest.raises(PluginError, match=message) as caught:
        run(y, {x: [1, 2, 3]})
    assert "pass 'a-pass' on a graph of" in str(caught.value)
    assert "plugin 'fancy'" in str(caught.value)


# -- registration


def identity_pass(step, context):
    return step


@pytest.mark.parametrize(
    ("register", "message"),
    [
        (
            lambda r: r.add_pass("regoin", identity_pass),
            r"stages are inline, whole, region, got 'regoin'; did you mean 'region'\?",
        ),
        (
            lambda r: [r.add_pass("whole", identity_pass) for _ in range(2)],
            "the pass 'identity-pass' is added twice: at .* and at ",
        ),
        (lambda r: r.add_pass("whole", identity_pass, name="Bad Name"), "is in kebab case"),
        (lambda r: r.add_rule(identity_pass), "a rule is made by RuleTable.add, got <function"),
        (lambda r: [r.add_rules(RULES) for _ in range(2)], "'sine-of-negated' is added twice"),
        (lambda r: r.add_rules(rule(raises, "Sinn")), "no op 'Sinn' is declared"),
        (lambda r: r.add_rules(rule(raises, "Sin", reason=" ")), "the reason why"),
        (lambda r: r.add_rules(rule(raises)), "must name the ops that it looks at"),
    ],
)
def test_what_cannot_be_right_is_refused_and_the_plugin_with_it(fancy, register, message) -> None:
    registry = PassRegistry()
    with pytest.raises(PluginError, match=message):
        register(registry)
    plugins = fancy(register)
    assert not plugins.passes.added.passes
    assert not plugins.passes.added.rules
    assert "plugin 'fancy' is installed but broken" in plugins.broken()
    x, y = sines()
    assert run(y, {x: [0, 0, 0]}).tolist() == [0, 0, 0]


def test_a_registry_is_filled_in_its_hook_only(fancy) -> None:
    kept: list[PassRegistry] = []
    plugins = fancy(kept.append)
    assert plugins.passes is not None
    with pytest.raises(PluginError, match="in the hook headrace_register_passes only"):
        kept[0].add_pass("whole", identity_pass)


def test_rules_of_one_name_of_two_plugins_live_side_by_side(monkeypatch, fake_entry) -> None:
    class Fancy:
        @hookimpl
        def headrace_register_passes(self, registry: PassRegistry) -> None:
            registry.add_rules(rule(lambda node, new: None, "Sin"))

    class Other(Fancy):
        @hookimpl
        def headrace_register_passes(self, registry: PassRegistry) -> None:
            registry.add_rules(rule(lambda node, new: None, "Cos"))

    plugins = PluginHost([fake_entry("fancy", Fancy()), fake_entry("other", Other())])
    added = plugins.passes.added
    assert [(r.name, r.provider.name) for r in added.rules] == [
        ("a-rule", "fancy"),
        ("a-rule", "other"),
    ]
