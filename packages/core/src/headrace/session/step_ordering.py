"""Runs of steps that keep the order among those of other sessions that ``Config`` asks for."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, final

from headrace.errors import ConfigError, UnimplementedError, located, shown
from headrace.graph.collections import GraphKeys
from headrace.graph.graph import Graph
from headrace.passes.variable_usage import Usage, usage_of
from headrace.runtime.concurrency.cancellation import Cancellation
from headrace.runtime.concurrency.deadlines import deadline
from headrace.runtime.concurrency.step_order import Bound, Order, bound_of, seconds_left
from headrace.runtime.runtime import RegisteredStep, Runtime
from headrace.session.config import Config
from headrace.session.running import RunStep

# Makes the function that runs a step, for so many seconds at most where it waits.
RunWithin = Callable[[float | None], RunStep]


@final
class Ordering:
    """The order of a session's steps among those of all that share its variables."""

    def __init__(self, runtime: Runtime, config: Config, graph: Graph) -> None:
        """Find the order.

        Args:
            runtime: What runs the steps.
            config: The settings of the session.
            graph: Its graph.

        Raises:
            ConfigError: if the settings ask for an order, and there is none.
        """
        self._consistency = config.consistency
        self._bound = bound_of(config.consistency)
        self._order: Order | None = getattr(runtime, "order", None)
        self._graph = graph
        # Ends what waits for its turn when the session is closed.
        self._closing = Cancellation()
        if self._bound is not None and self._order is None:
            raise ConfigError(
                "what runs the steps of this session keeps no order among those of several "
                f"sessions, which Config(consistency={config.consistency!r}) asks for"
            )

    def of(self, graph: Graph, step: RegisteredStep) -> RunWithin:
        """Return what makes the function that runs a step in its turn.

        Args:
            graph: The graph of the step.
            step: The step.

        Raises:
            ConfigError: if the step cannot be ordered, or sessions do not agree how.
        """
        order = self._order
        if order is None:
            return lambda timeout: _plain(step, timeout)
        local = self._graph.get_collection(GraphKeys.LOCAL_VARIABLES)
        usage = usage_of(graph, {v.handle.op.name for v in local if hasattr(v, "handle")})
        if self._bound is not None:
            check_order(usage, self._consistency)
        if usage.changes:
            order.join(self, self._consistency)
        return in_order(step, usage, order, self._bound, self._closing)

    def fence(self, timeout: float) -> AbstractContextManager[None]:
        """Return what holds back steps of others that change variables."""
        if self._order is None:
            raise UnimplementedError("what runs the steps of this session has no fences")
        if type(timeout) not in (int, float) or not 0 < timeout < float("inf"):
            raise ConfigError(f"timeout must be a number of seconds above 0, got {shown(timeout)}")
        return self._order.fence(timeout)

    def check_pieces(self) -> None:
        """Refuse steps that run piece by piece, where steps are ordered.

        Raises:
            ConfigError: if they are.
        """
        if self._bound is not None:
            raise ConfigError(
                f"Config(consistency={self._consistency!r}) orders whole steps; the pieces of a "
                "partial run are steps of their own, between which others would run"
            )

    def close(self, reason: BaseException) -> None:
        """End what waits, and forget the session."""
        self._closing.cancel(reason)
        if self._order is not None:
            self._order.leave(self)


def check_order(usage: Usage, consistency: str) -> None:
    """Refuse a step that goes on only together with those that it would have to wait for.

    Args:
        usage: What the step does.
        consistency: As ``Config(consistency=...)``, and not "relaxed".

    Raises:
        ConfigError: if it does.
    """
    op = usage.concerted
    if op is None:
        return
    raise located(
        ConfigError,
        [
            (
                f"Config(consistency={consistency!r}) cannot order this step: {op.name!r} "
                f"({op.type}) goes on only together with steps of other sessions, which would wait "
                "for it"
            ),
            f"  at {op.site}",
            (
                "  synchronous replicas and collectives keep the order among themselves; leave "
                "consistency='relaxed' with them"
            ),
        ],
        op,
    )


def in_order(
    step: RegisteredStep,
    usage: Usage,
    order: Order,
    bound: Bound | None,
    closing: Cancellation,
) -> RunWithin:
    """Return what makes the function that runs a step in its turn.

    Args:
        step: The step.
        usage: What it does with variables.
        order: The order of the steps of all sessions that may share its variables.
        bound: What it waits for; None for fences only.
        closing: Ends what waits, as the session does when it is closed.
    """
    if bound is not None and (usage.changes or (bound.reads and usage.reads)):
        turns = bound
        if usage.changes:
            return lambda timeout: _fenced(
                _in_turn(step, order, turns, closing, timeout, changes=True), order, closing
            )
        return lambda timeout: _in_turn(step, order, turns, closing, timeout, changes=False)
    if usage.changes and usage.concerted is None:
        return lambda timeout: _fenced(_plain(step, timeout), order, closing)
    return lambda timeout: _plain(step, timeout)


def _plain(step: RegisteredStep, timeout: float | None) -> RunStep:
    if timeout is None:
        return step.run
    return lambda feeds: step.run(feeds, timeout)


def _fenced(run_step: RunStep, order: Order, closing: Cancellation) -> RunStep:
    """Return what runs a step when no fence is up, and keeps fences waiting while it runs."""
    running = order.running

    def run(feeds: Sequence[Any]) -> list[Any]:
        # Noted first, and looked second: who puts up a fence does it the other way round.
        running.append(None)
        try:
            if order.held:
                order.hold_back(closing)
            return run_step(feeds)
        finally:
            running.pop()
            if order.held:
                order.left()

    return run


def _in_turn(
    step: RegisteredStep,
    order: Order,
    bound: Bound,
    closing: Cancellation,
    timeout: float | None,
    *,
    changes: bool,
) -> RunStep:
    """Return what waits for the turn of a step, and runs it."""

    def run(feeds: Sequence[Any]) -> list[Any]:
        end = None if timeout is None else time.monotonic() + timeout
        ending = Cancellation()
        key = closing.add(ending.cancel)
        try:
            with deadline(timeout, ending.cancel):
                turn = order.enter(bound, changes, ending)
        finally:
            closing.discard(key)
        try:
            return step.run(feeds, seconds_left(end))
        finally:
            order.end(turn)

    return run
