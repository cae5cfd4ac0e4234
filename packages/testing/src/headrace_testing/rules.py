"""Checks of rewrite rules: each case has two halves, the structure and the numbers.

The structure is what the simplifier makes of a program, with all rules that are registered, core's
and those of plugins; it must be the expected one, and stay so when it is simplified once more. The
numbers are the results of the program before and after, each run node by node with plain kernels:
for ordinary values and for those on which rules break (both zeros, infinities, NaN, the ends of
integers), without elements, and without known shapes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import headrace as hr
from headrace.extend.graphs import Operation
from headrace.extend.passes import Pipeline, Rewrite, StepGraph, extract, verify
from headrace.extend.plugins import host
from headrace_testing.failure import ConformanceError

NDArray = np.ndarray[Any, np.dtype[Any]]

# What "n" in the shape of an input is, where it is known and there are elements.
N = 4
_TURNS = 6
_SPECIAL: dict[str, list[Any]] = {
    "float": [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.5, 1e-40, -3e38, 1e-20, 0.3, 7e10],
    "int": [0, 1, -1, -128, 127, 2, 5, -7, 100, 13, -64],
    "uint": [0, 1, 255, 2, 128, 7, 200],
    "bool": [True, False, False],
}


@dataclass(frozen=True)
class RuleCase:
    """A program, and what a rule makes of it.

    Attributes:
        rule: The rule that must apply.
        build: The program, a function of placeholders by name.
        expected: What the first fetch becomes, with n = 4: feeds by name, constants by value, ops
            as ``Type(inputs, attribute=value)`` without attributes that have their default.
        inputs: Dtype and shape of each placeholder; "n" is 4, 0, or not known.
        exact: Whether results are equal bit by bit; else within a few roundings.
        signs: Whether the signs of zeros are equal, too, where ``exact``.
        better: Whether only finite results of the original must be met.
        feeds: Values of placeholders that take no special ones.
        known_only: Whether the program cannot be built for other n.
        label: Tells cases apart.
    """

    rule: str
    build: Callable[..., Any]
    expected: str
    inputs: Mapping[str, tuple[str, tuple[Any, ...]]] = field(default_factory=dict)
    exact: bool = True
    signs: bool = True
    better: bool = False
    feeds: Mapping[str, Any] = field(default_factory=dict)
    known_only: bool = False
    label: str = ""

    @property
    def varies(self) -> bool:
        """Whether the program can be built for any n."""
        return not self.known_only and any("n" in dims for _, dims in self.inputs.values())


def rule_case(rule: str, build: Callable[..., Any], expected: str, **options: Any) -> RuleCase:
    """Return a case.

    Args:
        rule: The rule.
        build: The program; its parameters name the placeholders.
        expected: What the first fetch becomes.
        **options: Other attributes of ``RuleCase``; for each parameter of ``build`` its dtype and
            shape, float32 and ("n", 3) where left out.
    """
    names = list(inspect.signature(build).parameters)
    facts = {k: options.pop(k) for k in list(options) if k in RuleCase.__dataclass_fields__}
    inputs = {name: options.pop(name, ("float32", ("n", 3))) for name in names}
    if options:
        raise TypeError(f"rule_case has no options {sorted(options)}")
    facts.setdefault("label", rule)
    return RuleCase(rule, build, expected, inputs, **facts)


def check_rule(case: RuleCase) -> None:
    """Check both halves of a case.

    Raises:
        ConformanceError: if the rule does not apply, makes something else than expected, or changes
            a result; names the rule and the input that shows it.
    """
    check_structure(case)
    check_numbers(case)
    if case.varies:
        check_without_elements(case)
        check_without_shapes(case)


def check_structure(case: RuleCase) -> None:
    """Check that the rule applies, and makes what is expected; as ``check_rule`` does."""
    new, rewrites = _simplified(build_step(case, N))
    verify(new)
    applied = list(dict.fromkeys(rewrite.rule for rewrite in rewrites))
    if case.rule not in applied:
        raise _failed(case, f"it does not apply; {', '.join(applied) or 'no rule'} did")
    again, more = _simplified(new)
    for step, when in ((new, ""), (again, " when it is simplified once more")):
        (found,) = as_text(step)
        if found != case.expected:
            raise _failed(case, f"expected {case.expected}, got {found}{when}")
    if more:
        names = ", ".join(rewrite.rule for rewrite in more)
        raise _failed(case, f"{names} applies to the result, so that rules do not come to an end")


def check_numbers(case: RuleCase) -> None:
    """Check results for ordinary and special values; as ``check_rule`` does."""
    step = build_step(case, N)
    new, _ = _simplified(step)
    for turn in range(_TURNS):
        _compare(case, step, new, _values(case, N, turn))


def check_without_elements(case: RuleCase) -> None:
    """Check results where n is 0; as ``check_rule`` does."""
    step = build_step(case, 0)
    new, _ = _simplified(step)
    _compare(case, step, new, _values(case, 0, 0))


def check_without_shapes(case: RuleCase) -> None:
    """Check results of a program that does not know n; as ``check_rule`` does."""
    step = build_step(case, None)
    new, _ = _simplified(step)
    verify(new)
    for turn in range(_TURNS // 2):
        _compare(case, step, new, _values(case, N, turn))


# -- steps


def build_step(case: RuleCase, n: int | None) -> StepGraph:
    """Return the program of a case as a step, in a graph of its own."""
    with hr.Graph().as_default():
        holders = [
            hr.placeholder(dtype, [n if d == "n" else d for d in dims], name=name)
            for name, (dtype, dims) in case.inputs.items()
        ]
        fetch = case.build(**dict(zip(case.inputs, holders, strict=True)))
        return extract(holders, [hr.convert_to_tensor(fetch)], [])


def _pipeline() -> Pipeline:
    return Pipeline(host().kernels, host().passes.added)


def _simplified(step: StepGraph) -> tuple[StepGraph, tuple[Rewrite, ...]]:
    return _pipeline().simplified(step)


def run_plainly(step: StepGraph, feeds: Sequence[NDArray]) -> list[NDArray]:
    """Run every node with its plain kernel, in order, and return what is fetched.

    Raises:
        ConformanceError: if a node has no plain kernel for the cpu, or it fails.
    """
    pipeline = _pipeline()
    values: dict[Any, NDArray] = dict(zip(step.feeds, feeds, strict=True))
    for op in step.graph.operations:
        if op.type == "Feed":
            continue
        if op.type == "Const":
            values[op.outputs[0]] = op.attrs["value"]
            continue
        found = pipeline.evaluate(op, [values[t] for t in op.inputs])
        if found is None:
            raise ConformanceError(f"{op!r} has no plain kernel on the cpu, or it failed")
        values.update(zip(op.outputs, map(np.asarray, found), strict=True))
    return [values[t] for t in step.fetches]


def as_text(step: StepGraph) -> list[str]:
    """Return each fetch as an expression: feeds by name, constants by value, attributes."""
    texts: dict[Any, str] = {}
    for op in step.graph.operations:
        body = _expression(op, [texts[t] for t in op.inputs])
        for t in op.outputs:
            texts[t] = body if len(op.outputs) == 1 else f"{body}[{t.index}]"
    return [texts[t] for t in step.fetches]


def _expression(op: Operation, inputs: list[str]) -> str:
    if op.type == "Feed":
        return op.name.split("/")[1]
    if op.type == "Const":
        return str(op.attrs["value"].tolist())
    defaults = {a.name: a.default for a in op.schema.attrs}
    attrs = [f"{k}={v}" for k, v in op.attrs.items() if v is not defaults[k]]
    return f"{op.type}({', '.join([*inputs, *attrs])})"


# -- numbers


def _values(case: RuleCase, n: int, turn: int) -> list[NDArray]:
    rng = np.random.default_rng(turn)
    found = []
    for i, (name, (dtype, dims)) in enumerate(case.inputs.items()):
        kind = hr.as_dtype(dtype)
        shape = [n if d == "n" else d for d in dims]
        size = int(np.prod(shape))
        data: Any
        if name in case.feeds:
            data = np.resize(case.feeds[name], size)
        elif turn == 0 and kind.is_floating:
            data = rng.standard_normal(size) * 3
        else:
            # Other strides for other inputs, so that all pairs meet in some turn.
            start, stride = turn * 3 + i, 1 + turn * i
            picks = _SPECIAL[kind.kind]
            data = np.array([picks[(start + stride * j) % len(picks)] for j in range(size)])
        with np.errstate(all="ignore"):
            found.append(np.asarray(data).reshape(shape).astype(kind.numpy))
    return found


def _compare(case: RuleCase, old: StepGraph, new: StepGraph, feeds: list[NDArray]) -> None:
    with np.errstate(all="ignore"):
        wanted, got = run_plainly(old, feeds)[0], run_plainly(new, feeds)[0]
        problem = next(_differences(case, got, wanted), "")
    if problem:
        given = "; ".join(
            f"{name} = {value.tolist()}" for name, value in zip(case.inputs, feeds, strict=True)
        )
        raise _failed(case, f"{problem}\n  for {given:.2000}")


def _differences(case: RuleCase, got: NDArray, wanted: NDArray) -> Iterator[str]:
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        yield (
            f"{got.dtype}{list(got.shape)} comes out, where {wanted.dtype}{list(wanted.shape)} "
            "did before"
        )
        return
    if case.exact or got.dtype.kind not in "fc":
        wrong = (got != wanted) & ~((got != got) & (wanted != wanted))
        if got.dtype.kind == "f" and case.signs:
            wrong |= (np.signbit(got) != np.signbit(wanted)) & ~np.isnan(wanted)
    else:
        judged = np.isfinite(wanted) if case.better else np.full(wanted.shape, True)
        wrong = judged & ~np.isclose(got, wanted, rtol=3e-6, atol=1e-6, equal_nan=True)
        if not case.better:
            wrong |= np.isnan(got) & ~np.isnan(wanted)
    if np.any(wrong):
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        yield f"the result changes at {list(place)}: {wanted[place]} before, {got[place]} after"


def _failed(case: RuleCase, problem: str) -> ConformanceError:
    return ConformanceError(f"rule {case.rule!r} ({case.label}): {problem}")
