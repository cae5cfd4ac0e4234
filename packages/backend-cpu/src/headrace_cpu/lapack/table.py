"""Tables of calls: what a decomposition does, as data that a kernel runs on several threads.

Functions of Fortran take the addresses of their arguments and nothing else. So a call is a function
and a few places in memory; a *repeated* call is made for each matrix of a batch or each part of a
matrix, with places that move on by a step. Threads share the repetitions of a call; a border makes
them wait for one another, and the calls of a *chain*, each of which needs what the one before has
made, are made by one thread. The same calls give the same bits, on whatever threads.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np

from headrace.extend.records import dataclass
from headrace_cpu.lapack.library import LETTERS, Lapack, prototype
from headrace_cpu.native.memory import address

# The most arguments that a function takes, with the lengths of letters that Fortran passes behind
# them: nobody reads those, but their places must be the callee's.
ARGUMENTS = 16
# Words of an entry: the function, its repetitions, who makes a single one, then the arguments.
HEAD, WORDS = 3, 3 + 4 * ARGUMENTS
# In the place of a function.
BORDER, END = 0, -1
_BYTES_OF_CONSTANTS = 1 << 16


@dataclass(frozen=True, slots=True)
class Place:
    """Where an argument is.

    Attributes:
        base: Which of the bases of a run it counts from; 0 is address 0.
        offset: Bytes behind the base.
        step: Bytes that each repetition adds.
        own: Bytes that each thread adds; until a table is ended, whether it is a thread's own.
    """

    base: int
    offset: int = 0
    step: int = 0
    own: int = 0

    def __add__(self, offset: int) -> Place:
        return Place(self.base, self.offset + offset, self.step, self.own)

    def stepping(self, step: int) -> Place:
        """Return the place with another step."""
        return Place(self.base, self.offset, step, self.own)


def _settled(place: Place, shared: int, own: int) -> Place:
    if not place.own:
        return place
    return Place(place.base, shared + place.offset, place.step, own)


class Table:
    """Calls in order.

    Attributes:
        words: They, as the kernel reads them.
        entries: They, as Python reads them: function, repetitions and arguments.
    """

    def __init__(self, lapack: Lapack, dtype: np.dtype[np.generic]) -> None:
        self.lapack = lapack
        self.dtype = dtype
        self.entries: list[tuple[int, int, tuple[Place, ...]]] = []
        self.words = np.zeros(0, np.int64)
        self._constants = np.zeros(_BYTES_OF_CONSTANTS, np.uint8)
        self._used = 0
        self._known: dict[object, int] = {}
        # Where chains begin and end among the entries.
        self._chains: list[tuple[int, int]] = []

    # -- constants

    def _kept(self, value: np.ndarray) -> int:
        """Keep some bytes, and return where they are."""
        key = (value.dtype.str, value.tobytes())
        if key not in self._known:
            end = self._used + value.nbytes
            if end > self._constants.size:
                raise MemoryError("a table of calls has too many constants")
            self._constants[self._used : end] = value.reshape(-1).view(np.uint8)
            self._known[key] = address(self._constants) + self._used
            self._used = -(-end // 8) * 8
        return self._known[key]

    def letter(self, value: str) -> Place:
        """Return the place of a letter."""
        return Place(0, self._kept(np.frombuffer(value.encode(), np.uint8)))

    def whole(self, value: int) -> Place:
        """Return the place of a whole number; functions that read 32 bits see their half."""
        return Place(0, self._kept(np.array([value], np.int64)))

    def wholes(self, values: Sequence[int]) -> Place:
        """Return the place of whole numbers, one for each repetition."""
        return Place(0, self._kept(np.array(values, np.int64)), 8)

    def number(self, value: float) -> Place:
        """Return the place of a number."""
        return Place(0, self._kept(np.array([value], self.dtype)))

    # -- calls

    def call(self, name: str, *given: Place | int | float | str, times: int = 1) -> None:
        """Add a call.

        Args:
            name: The function, without the letter of the dtype.
            given: Its arguments: places, or whole numbers, numbers of the dtype, and letters.
            times: How often it is repeated.
        """
        letter = LETTERS[self.dtype.name]
        self.call_address(self.lapack.addresses[letter + name], *given, times=times)

    def call_address(
        self, function: int, *given: Place | int | float | str, times: int = 1
    ) -> None:
        """Add a call of a function at an address, as ``call`` does."""
        self.entries.append((function, times, tuple(map(self._place, given))))

    def _place(self, value: Place | int | float | str) -> Place:
        if isinstance(value, Place):
            return value
        if isinstance(value, str):
            return self.letter(value)
        return self.whole(value) if isinstance(value, int) else self.number(value)

    def border(self) -> None:
        """Let all threads finish what is before."""
        self.entries.append((BORDER, 0, ()))

    @contextlib.contextmanager
    def chain(self) -> Iterator[None]:
        """Let one thread make the calls of the block, one after the other.

        Calls that are repeated are so in any case: each thread makes the same repetitions of all
        calls that are repeated as often.
        """
        first = len(self.entries)
        yield
        self._chains.append((first, len(self.entries)))

    def end(self, shared: int, own: int) -> Table:
        """Finish the table.

        Args:
            shared: Where the memory begins that threads have for themselves, behind its base.
            own: How much of it each has, in bytes.
        """
        self.entries = [
            (function, times, tuple(_settled(a, shared, own) for a in arguments))
            for function, times, arguments in (*self.entries, (END, 0, ()))
        ]
        rows = np.zeros((len(self.entries), WORDS), np.int64)
        within = {place for first, last in self._chains for place in range(first, last - 1)}
        singles = 0
        for place, (row, (function, times, arguments)) in enumerate(
            zip(rows, self.entries, strict=True)
        ):
            row[:HEAD] = function, times, singles
            # The next one is another thread's, unless it belongs to this one.
            singles += function > 0 and times == 1 and place not in within
            for i, a in enumerate(arguments):
                row[HEAD + 4 * i : HEAD + 4 * i + 4] = a.base, a.offset, a.step, a.own
        self.words = rows.reshape(-1)
        return self

    # -- running

    def run(self, bases: Sequence[int]) -> None:
        """Make all calls on the calling thread.

        Args:
            bases: Addresses; the first is 0.
        """
        for function, times, arguments in self.entries:
            if function in (BORDER, END):
                continue
            call = prototype(function, ARGUMENTS)
            unused = (0,) * (ARGUMENTS - len(arguments))
            starts = [bases[a.base] + a.offset for a in arguments]
            for i in range(times):
                call(*[s + i * a.step for s, a in zip(starts, arguments, strict=True)], *unused)
