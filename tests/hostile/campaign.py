"""Runs a campaign: cases in processes of their own, in which nothing forbidden may happen.

A case is accepted or refused. Forbidden is everything else: another exception than Headrace's, a
message that is too long, a crash, more than 20 seconds, more memory than the bound, or, where the
case can tell, a wrong result without a word.

Cases are numbered, and each is made from the campaign's seed and its number alone, so that one that
failed is made again by ``python -m tests.hostile NAME --case NUMBER``.
"""

from __future__ import annotations

import contextlib
import logging
import mmap
import os
import random
import resource
import shutil
import signal
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from headrace.errors import MAX_LETTERS, MAX_LINES, HeadraceError

SECONDS = 20.0
MEMORY_BYTES = 1 << 30
# With this code a process ends whose memory was full: the next case is to have all of its own.
_FULL = 113


class WrongResultError(Exception):
    """Hostile input that was accepted, and means something else than it says."""


@dataclass(frozen=True)
class Campaign:
    """Cases of one kind.

    Attributes:
        name: Its name.
        says: What the cases are, in a few words.
        cases: How many there are; of those that are drawn, how many the long form draws.
        try_case: Makes the case of a number in an empty working directory, and hands it over;
            raises what Headrace raises, or ``WrongResultError``.
        drawn: Whether there are as many cases as one likes.
        prepare: What all cases need, made once before processes are started for them.
    """

    name: str
    says: str
    cases: int
    try_case: Callable[[random.Random, int], None]
    drawn: bool = True
    prepare: Callable[[], object] | None = None


@dataclass
class Outcome:
    """What came of a campaign.

    Attributes:
        counts: How many cases were accepted, refused, or forbidden.
        forbidden: The number of each case with a forbidden outcome, and what happened.
        slowest: The seconds that the slowest case took.
    """

    counts: Counter[str] = field(default_factory=Counter)
    forbidden: list[tuple[int, str]] = field(default_factory=list)
    slowest: float = 0.0

    def add(self, number: int, fault: str) -> None:
        """Note a forbidden outcome."""
        self.counts["forbidden"] += 1
        self.forbidden.append((number, fault))


def run_case(campaign: Campaign, number: int, seed: int) -> str:
    """Run a case in this process, in the working directory.

    Returns:
        ``accepted`` or ``refused``; otherwise what is forbidden.
    """
    # A string, which makes the same sequence in every process and version of Python.
    draw = random.Random(f"{campaign.name} {seed} {number}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            campaign.try_case(draw, number)
    except MemoryError as error:
        # ``ResourceExhaustedError`` is one, too; it also tells of full disks.
        if not isinstance(error.__cause__, OSError):
            return f"memory: {type(error).__name__}: {error}\n{_where(error)}"
    except HeadraceError as error:
        message = str(error)
        lines = message.splitlines()
        if not lines or len(lines) > MAX_LINES or len(message) > MAX_LETTERS:
            return f"a message of {len(lines)} lines, {len(message)} letters: {message[:400]}"
    except Exception as error:
        told = "; ".join([str(error)[:400], *getattr(error, "__notes__", ())])
        return f"{type(error).__name__}: {told}\n{_where(error)}"
    else:
        return "accepted"
    return "refused"


def _where(error: BaseException) -> str:
    return "".join(traceback.format_tb(error.__traceback__)[-3:])


def run(campaign: Campaign, count: int, seed: int = 0, first: int = 0) -> Outcome:
    """Run so many cases in processes of their own; of those that are listed, evenly spread ones.

    ``first`` is the number of the first one.

    A process that dies or hangs is a forbidden outcome of the case that it was at; another one
    goes on with the next.
    """
    outcome = Outcome()
    if campaign.prepare is not None:
        campaign.prepare()
    step = 1 if campaign.drawn else max(1, campaign.cases // count)
    number, end = first, min(first + step * count, campaign.cases)
    with tempfile.TemporaryDirectory(prefix="hostile-") as name, mmap.mmap(-1, 8) as at:
        folder = Path(name)
        # Cases without rights must get here.
        folder.chmod(0o755)
        while number < end:
            at[:] = number.to_bytes(8, "little")
            report = folder / "report"
            child = os.fork()
            if child == 0:
                _work(campaign, range(number, end, step), seed, folder, at)
            died = _watch(child, at)
            for line in report.read_text().split("\0") if report.exists() else ():
                _take(outcome, line)
            report.unlink(missing_ok=True)
            if died is None:
                break
            number = int.from_bytes(at[:], "little")
            if died:
                outcome.add(number, died + _last_words(folder / "why"))
            number += step
    return outcome


def _take(outcome: Outcome, line: str) -> None:
    if not line:
        return
    number, seconds, said = line.split(" ", 2)
    outcome.slowest = max(outcome.slowest, float(seconds))
    if said in ("accepted", "refused"):
        outcome.counts[said] += 1
    else:
        outcome.add(int(number), said)


def _work(campaign: Campaign, numbers: range, seed: int, folder: Path, at: mmap.mmap) -> None:
    """Run cases in a process that was forked for them; never return."""
    code = 1
    why = folder / "why"
    why.unlink(missing_ok=True)
    try:
        _limit_memory()
        # What is logged of each case is no news.
        logging.disable()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with (folder / "report").open("w", buffering=1 << 16) as report:
            for number in numbers:
                at[:] = number.to_bytes(8, "little")
                # Of its own: what an earlier case left running may still write into another.
                work = folder / f"work-{number}"
                work.mkdir()
                os.chdir(work)
                # What was written must not be lost with the process, nor written by both.
                report.flush()
                started = time.perf_counter()
                said = run_case(campaign, number, seed)
                took = time.perf_counter() - started
                # A NUL is where a line of the report ends.
                line = said.replace("\0", " NUL ")
                report.write(f"{number} {took:.3f} {line}\0")
                shutil.rmtree(work, ignore_errors=True)
                if said.startswith("memory:"):
                    code = _FULL
                    break
            else:
                code = 0
    except BaseException:
        why.write_text(traceback.format_exc(), "utf-8", "replace")
    finally:
        os._exit(code)


def _last_words(why: Path) -> str:
    """Return what a process could say before it ended, empty if it could not."""
    return f"\n{why.read_text('utf-8')[-2000:]}" if why.exists() else ""


def _limit_memory() -> None:
    used = next(
        line for line in Path("/proc/self/status").read_text().splitlines() if "VmSize" in line
    )
    limit = int(used.split()[1]) * 1024 + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    # A process that crashes leaves nothing behind.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _watch(child: int, at: mmap.mmap) -> str | None:
    """Wait for a process.

    Returns:
        How it died before its end; empty if it ended by itself there, None if it came to its end.
    """
    seen, since = bytes(at[:]), time.monotonic()
    pause = 0.005
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            if code in (0, _FULL):
                return None if code == 0 else ""
            return f"the process ended with {_named(code)}"
        if bytes(at[:]) != seen:
            seen, since = bytes(at[:]), time.monotonic()
        elif time.monotonic() - since > SECONDS:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return f"it took more than {SECONDS:g} seconds"
        time.sleep(pause)
        pause = min(pause * 1.5, 0.2)


def _named(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"code {code}"


@contextlib.contextmanager
def environment(**values: str) -> Iterator[None]:
    """Set environment variables in a block."""
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def mutated(draw: random.Random, content: bytes, most: int = 4) -> bytes:
    """Return bytes of which a few were flipped, replaced, removed, doubled, or cut off."""
    data = bytearray(content)
    for _ in range(draw.randint(1, most)):
        if not data:
            break
        place = draw.randrange(len(data))
        length = min(draw.choice((1, 1, 1, 2, 4, 8, 64)), len(data) - place)
        match draw.randrange(7):
            case 0 | 1:
                data[place] ^= 1 << draw.randrange(8)
            case 2:
                data[place : place + length] = draw.randbytes(length)
            case 3:
                # Values at which counts and sizes go wrong.
                odd = draw.choice((0, 0xFF, 0x7F, 0x80))
                data[place : place + length] = bytes([odd]) * length
            case 4:
                del data[place : place + length]
            case 5:
                data[place:place] = data[place : place + length]
            case _:
                del data[place:]
    return bytes(data)
