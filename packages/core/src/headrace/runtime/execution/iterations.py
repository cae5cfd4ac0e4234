"""A run of a loop whose iterations overlap.

Up to ``parallel_iterations`` iterations are under way at a time, each a run of the body with a step
of its own. A node runs when what it takes is there; a variable's value goes to the next iteration
as soon as it is known. An iteration begins when it is known that there is one, and when the oldest
that could still be under way beside it has ended.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol, final

from headrace.errors import InvalidInputError
from headrace.runtime.control_flow.invocations import LoopStart, truth
from headrace.runtime.execution.plan import Plan
from headrace.runtime.execution.serial import named
from headrace.runtime.execution.step import Execution, inner_step

# Stands for the value of a variable that is not known yet.
_UNKNOWN: Any = object()


class Host(Protocol):
    """What runs the nodes of iterations."""

    def enter(self, execution: Execution) -> None:
        """Run the nodes of a run that wait for nothing."""

    def ready(self, execution: Execution, index: int) -> None:
        """Run a node, which waits for nothing any more."""

    def run_inner(self, execution: Execution) -> None:
        """Run a plan, at once where nothing in it waits; ``done`` is called when it has ended."""

    def fail(
        self, execution: Execution, error: BaseException, cause: BaseException | None = None
    ) -> None:
        """End a run with an error of it, or a part of it if others have to end before."""


@final
class Iterations:
    """The iterations of one run of a loop.

    Iterations that fail end the loop when all before them have ended, so that it ends with the
    error with which iterations one after the other would.
    """

    def __init__(
        self,
        start: LoopStart,
        outer: Execution,
        index: int,
        host: Host,
        done: Callable[[list[Any]], None],
    ) -> None:
        """Begin with none.

        Args:
            start: What the first iteration begins with.
            outer: The run of the plan with the loop.
            index: The place of the loop there.
            host: Runs nodes.
            done: Is called with the variables, what is kept of each iteration, and how many there
                were, when all have ended.
        """
        self._start = start
        self._loop = start.loop
        self._outer = outer
        self._node = outer.plan.nodes[index]
        self._host = host
        self._done = done
        # What the next iteration begins with, as far as it is known.
        self._coming: list[Any] = list(start.variables)
        self._next = 0
        self._rounds = start.rounds
        # The iterations of which it was asked whether there is one, and of which there is.
        self._asked = self._known = 0
        self._asking = False
        # Those under way, from the oldest one on, and those among them that have ended.
        self._live: dict[int, Execution] = {}
        self._oldest = 0
        self._ended: set[int] = set()
        # The iteration whose turn it is to draw, and how many of its nodes have not.
        self._drawing = 0
        self._draws_left = len(self._loop.drawing)
        self._kept: list[list[Any]] = []
        self._failure: tuple[int, BaseException] | None = None

    def advance(self) -> None:
        """Begin the iterations that can begin."""
        while (
            self._failure is None
            and self._next < self._oldest + self._loop.most
            and self._may_begin()
        ):
            self._begin()
        if self._failure is None and self._oldest == self._rounds:
            self._rounds = -1
            self._done([self._coming, self._kept, self._oldest])

    def filled(self, execution: Execution, index: int) -> None:
        """Take over what a node of an iteration has filled."""
        loop, number = self._loop, execution.number
        if execution.fills is None:
            return
        following = self._live.get(number + 1)
        fetches = execution.step.fetches
        for variable in execution.fills[index]:
            value = fetches[variable]
            if following is None:
                self._coming[variable] = value
            else:
                feeds: Any = following.step.feeds
                feeds[variable] = value
                self._let_go(following, loop.takers[variable])
        if number == self._drawing and index in loop.drawing:
            self._draws_left -= 1
            if not self._draws_left:
                self._drawing += 1
                self._draws_left = len(loop.drawing)
                if following is not None:
                    self._let_go(following, loop.drawing)
        if following is None and execution.fills[index]:
            self.advance()

    def abandons(self, number: int) -> bool:
        """Whether an iteration has failed, or follows one that has."""
        return self._failure is not None and number >= self._failure[0]

    def failed(self, number: int, error: BaseException) -> bool:
        """Note that an iteration, or the condition before it, has failed.

        Returns:
            Whether that ends the loop now. Otherwise it does when those before have ended.
        """
        if not self.abandons(number):
            self._failure = number, error
        return number == self._oldest

    def _may_begin(self) -> bool:
        """Whether there is another iteration, as far as it is known."""
        if self._rounds is not None:
            return self._next < self._rounds
        if self._asked == self._next and self._may_ask():
            self._asked += 1
            self._ask()
        return self._next < self._known

    def _may_ask(self) -> bool:
        loop = self._loop
        if loop.asked_last and self._oldest < self._next:
            return False
        return all(self._coming[v] is not _UNKNOWN for v in loop.asked)

    def _ask(self) -> None:
        """Ask the condition; the answer may come later."""
        arguments = (*self._coming, *self._start.of_cond)
        plan, label = self._loop.cond, f"?{self._next}"
        asked = self._execution(plan, arguments, label, lambda: self._answered(asked))
        self._asking = True
        self._host.run_inner(asked)
        self._asking = False

    def _answered(self, asked: Execution) -> None:
        try:
            goes_on = truth(asked.step.fetches[0])
        except InvalidInputError as error:
            self._host.fail(asked, named(error, self._node, (), self._outer.plan), error)
            return
        if goes_on:
            self._known += 1
        else:
            self._rounds = self._next
        if not self._asking:
            self.advance()

    def _begin(self) -> None:
        loop, number = self._loop, self._next
        counts = () if self._start.counts is None else self._start.counts(number)
        arguments = [*self._coming, *counts, *self._start.of_body]
        ended = functools.partial(self._end, number)
        execution = self._execution(loop.body, arguments, str(number), ended)
        execution.fills = loop.fills
        missing = execution.missing
        for value, takers in zip(self._coming, loop.takers, strict=True):
            if value is _UNKNOWN:
                for i in takers:
                    missing[i] += 1
        for first, waiting in ((self._oldest, loop.last), (self._drawing, loop.drawing)):
            if number > first:
                for i in waiting:
                    missing[i] += 1
        self._live[number] = execution
        self._coming = [_UNKNOWN] * loop.variables
        self._next += 1
        self._host.enter(execution)

    def _execution(
        self, plan: Plan, arguments: Any, label: str, done: Callable[[], None]
    ) -> Execution:
        step = inner_step(self._node, self._outer.step, (plan, arguments, label))
        made = Execution(plan, step, done, self._outer)
        made.loop, made.number = self, self._next
        return made

    def _end(self, number: int) -> None:
        """Let an iteration go, all of which has run, if those before are gone."""
        self._ended.add(number)
        while self._oldest in self._ended:
            self._ended.remove(self._oldest)
            execution = self._live.pop(self._oldest)
            if self._start.kept is not None:
                saved = execution.step.fetches[self._loop.variables :]
                self._kept.append(self._start.kept(saved))
            self._oldest += 1
            if self._failure is not None and self._failure[0] == self._oldest:
                self._host.fail(self._outer, self._failure[1])
                return
            following = self._live.get(self._oldest)
            if following is not None:
                self._let_go(following, self._loop.last)
        self.advance()

    def _let_go(self, execution: Execution, nodes: tuple[int, ...]) -> None:
        """Note that something is there for which nodes of an iteration waited."""
        for index in nodes:
            execution.missing[index] -= 1
            if not execution.missing[index]:
                self._host.ready(execution, index)
