"""Loops of which a device runs many iterations in one call, where it can.

Where the rounds of a loop are counted, or say themselves whether another one follows, and its body
is one compiled program, the program may be able to run many rounds without coming back to Python.
It does so in slices of some milliseconds:
between two of them the executor sees whether the step was cancelled, and Python whether it was
interrupted. Whatever a program cannot do so, and whatever fails, is run round by round, where
errors are told: the body of such a loop has no effects, so that nothing is done twice.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol, final

from headrace.records import dataclass
from headrace.runtime.devices.capabilities import LoopingProgram
from headrace.runtime.state.tensor_list import ListValue

if TYPE_CHECKING:
    from headrace.runtime.control_flow.trip_count import TripCount
    from headrace.runtime.execution.plan import Plan
    from headrace.runtime.regions.region import RegionCall

# To set up many rounds takes as long as a few of them.
_FEWEST = 4


@dataclass(frozen=True, slots=True)
class LoopForm:
    """How a loop hands values from round to round.

    Attributes:
        arguments: For each input of the program, the argument of the body that it takes.
        carried: So many of the body's arguments are the first of its results of the round before;
            the other results are kept of each round.
        counters: What each round adds to those of the other arguments that count, by number, as
            Python's integers.
        asks: Whether the result behind the carried ones says if another round follows; it is
            not kept.
    """

    arguments: tuple[int, ...]
    carried: int
    counters: tuple[tuple[int, int], ...] = ()
    asks: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class HeldLoop:
    """A loop inside of a region, for devices that run it without Python.

    Attributes:
        cond: The region of its condition, as far as that must be asked before the first round; None
            where the rounds are counted. It takes the loop's first inputs.
        body: The region of its body.
        form: How it hands values on.
        arguments: Which of the loop's inputs each argument of the body is in the first round.
        variables: For each variable of the loop which of the carried ones it is, None for one that
            only counts.
        count: Says how many rounds there are, or at most are.
        steps: What each round adds to a variable that only counts, by its number.
    """

    cond: RegionCall | None
    body: RegionCall
    form: LoopForm
    arguments: tuple[int, ...]
    variables: tuple[int | None, ...]
    count: TripCount | None
    steps: Mapping[int, Any] = field(default_factory=dict)


class LoopRun(Protocol):
    """One run of a loop.

    Attributes:
        rounds: How many rounds it has made.
        going: Whether the last of them said that another one follows.
    """

    rounds: int
    going: bool

    def advance(self) -> bool:
        """Run some rounds, for some milliseconds; return whether more are left.

        Where one fails, none is left, and there are no results.
        """

    def results(self) -> tuple[list[Any], list[ListValue]] | None:
        """Return the carried values and the lists of what was kept; None where a round failed."""


class Rounds(Protocol):
    """What runs rounds of a loop."""

    def start(self, arguments: Sequence[Any], count: int | None) -> LoopRun | None:
        """Begin a run; None where these arguments do not fit.

        Args:
            arguments: The body's, of the first round.
            count: How many rounds there are, at least one. Where rounds say whether another one
                follows, how many there are at most, None where nobody knows; the run may then end
                before the loop does, with ``going``.
        """


@final
class _Slices:
    """What stands for a plan where an executor is asked to run a slice of a loop."""

    __slots__ = ("_run",)

    def __init__(self, run: LoopRun) -> None:
        self._run = run

    def whole(self, feeds: Sequence[Any]) -> list[Any]:
        """Run the next slice."""
        return [self._run.advance()]


@final
class LoopRunner:
    """Runs the rounds of one loop at one go, where that can be done."""

    def __init__(
        self, plan: Plan, carried: int, counters: Mapping[int, Any], *, asks: bool = False
    ) -> None:
        """Look at a body.

        Args:
            plan: Its plan.
            carried: As in ``LoopForm``.
            counters: What each round adds to which arguments, as scalars.
            asks: As in ``LoopForm``.
        """
        self._asks = asks
        self._carried = carried
        self._counters = tuple((i, int(step)) for i, step in sorted(counters.items()))
        self._region = plan.nodes[0].region if plan.whole is not None else None
        # What was found for a program, which is another one after shapes have changed.
        self._known: tuple[Any, Rounds] | None = None

    def told(self) -> str:
        """Return how the rounds run, as far as it is known."""
        if self._region is None:
            return "runs round by round: the body is not one compiled program and nothing else"
        programs = list(self._region.programs.values())
        if not programs:
            return ""
        found = self._rounds(programs[-1])
        if isinstance(found, str):
            return f"runs round by round: {found}"
        return "runs many rounds at one go"

    def start(self, arguments: Sequence[Any], count: int | None) -> LoopRun | None:
        """Begin a run; None where rounds have to run one by one.

        Args:
            arguments: The body's, of the first round.
            count: How many rounds there are, or at most are where rounds are asked; None where
                that is not known.
        """
        if self._region is None:
            return None
        if not self._asks and (count is None or count < _FEWEST):
            return None
        program = self._region.settled(arguments)
        if program is None:
            return None
        found = self._rounds(program)
        return None if isinstance(found, str) else found.start(arguments, count)

    def _rounds(self, program: Any) -> Rounds | str:
        known = self._known
        if known is not None and known[0] is program:
            return known[1]
        if not isinstance(program, LoopingProgram):
            return "its device runs one round at a time"
        assert self._region is not None
        form = LoopForm(self._region.feeds, self._carried, self._counters, self._asks)
        found = program.rounds(form)
        if not isinstance(found, str):
            self._known = program, found
        return found


def slices(run: LoopRun) -> Generator[Any, list[Any], None]:
    """Yield what an executor is asked to run until no rounds of a run are left."""
    part = _Slices(run)
    number = 0
    while True:
        (more,) = yield part, (), f"rounds {number}"
        if not more:
            return
        number += 1
