"""Scenarios: short programs with state, and what each of their steps yields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headrace import Graph, Session
from headrace import device as device_scope
from headrace.errors import HeadraceError, shorten
from headrace_testing.failure import ConformanceError
from headrace_testing.plugin_checks.runs import EXECUTORS, config_of

# What is fetched, and perhaps what is fed.
Step = Any


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """A short program with state, for ops that a single call does not show.

    It runs in every executor, with and without optimization, and in two sessions that take turns:
    always the same.

    Attributes:
        name: How messages call it.
        build: Adds nodes to the default graph, and returns the steps: what each fetches, or pairs
            of that and what it feeds.
        expected: What each step yields; None for a step of which only the effect counts.
        ops: The types of the ops that it is about.
        device: Where it runs.
    """

    name: str
    build: Callable[[], Sequence[Step]]
    expected: Sequence[Any]
    ops: Sequence[str] = field(default=())
    device: str = "cpu"


def check_scenario(scenario: Scenario) -> None:
    """Run a scenario in every way.

    Raises:
        ConformanceError: if a step yields something else than it says, or fails.
    """
    for executor in EXECUTORS:
        for optimize in (True, False):
            way = f"{executor}{'' if optimize else ', not optimized'}"
            with Graph().as_default() as graph:
                graph.seed = 7
                with device_scope(scenario.device):
                    steps = [_pair(step) for step in scenario.build()]
                missing = set(scenario.ops) - {op.type for op in graph.operations}
            if missing:
                raise ConformanceError(f"scenario {scenario.name!r} adds no {sorted(missing)}")
            if len(steps) != len(scenario.expected):
                raise ConformanceError(
                    f"scenario {scenario.name!r} has {len(steps)} steps, and expects "
                    f"{len(scenario.expected)} results"
                )
            config = config_of(executor, optimize=optimize)
            one, two = Session(graph=graph, config=config), Session(graph=graph, config=config)
            with one, two:
                for i, (fetch, feeds) in enumerate(steps):
                    for session, which in ((one, way), (two, f"{way}, second session")):
                        _check_step(scenario, which, i, session, fetch, feeds)


def _check_step(
    scenario: Scenario,
    way: str,
    i: int,
    session: Session,
    fetch: Any,
    feeds: Mapping[Any, Any] | None,
) -> None:
    try:
        got = session.run(fetch, feeds)
    except HeadraceError as error:
        raise _fault(scenario, way, i, f"fails: {error}") from error
    expected = scenario.expected[i]
    if expected is None:
        return
    pairs = zip(got, expected, strict=True) if isinstance(got, list | tuple) else [(got, expected)]
    for mine, wanted in pairs:
        a, b = np.asarray(mine), np.asarray(wanted)
        if a.shape != b.shape or not np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"):
            raise _fault(scenario, way, i, f"yields {mine}, expected {wanted}")


def _fault(scenario: Scenario, way: str, i: int, text: str) -> ConformanceError:
    lines = [f"scenario {scenario.name!r}, step {i} ({way}) {text}"]
    return ConformanceError(shorten(lines, 12))


def _pair(step: Step) -> tuple[Any, Mapping[Any, Any] | None]:
    if isinstance(step, tuple) and len(step) == 2 and isinstance(step[1], Mapping):
        return step[0], step[1]
    return step, None
