"""A few cases of every campaign of hostile input; ``nox -s hostile`` runs all of them."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from headrace.errors import GraphError
from tests.children import run_python

from . import campaign
from .campaign import MEMORY_BYTES, Campaign, WrongResultError, mutated, run

pytestmark = [
    pytest.mark.needs("backend-cpu", "data", "io", "train"),
    # A process that was forked warns of threads that other tests started.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

# Together they take a few seconds.
FEW = 12
# To list all public calls takes longer than to try a few; tests/core/borders has some of them.
SLOW = ("--without", "arguments", "--without", "argument-pairs")


@pytest.mark.timeout(300)
def test_nothing_forbidden_happens() -> None:
    # In a process of its own: what is forked must not inherit the threads of other tests.
    words = ("-m", "tests.hostile", "--cases", FEW, *SLOW)
    text = run_python(*words, cwd=Path(__file__).parents[2], timeout_s=280.0).stdout
    assert text.splitlines()[-1] == "no forbidden outcome"
    # All campaigns ran.
    assert len(text.splitlines()) >= 23, text


# -- the campaigns notice what is forbidden


class UncutError(GraphError):
    """One that shows all of its text, where the others cut it."""

    def __str__(self) -> str:
        return Exception.__str__(self)


def tried(case: object) -> tuple[dict[str, int], list[tuple[int, str]]]:
    outcome = run(Campaign("own", "of this test", 3, case), 3)  # type: ignore[arg-type]
    return dict(outcome.counts), outcome.forbidden


def test_errors_of_headrace_are_refusals() -> None:
    def case(draw: random.Random, number: int) -> None:
        if number:
            raise GraphError("no")

    assert tried(case) == ({"accepted": 1, "refused": 2}, [])


@pytest.mark.parametrize(
    ("fault", "match"),
    [
        (lambda: {}["x"], "KeyError"),
        (lambda: (_ for _ in ()).throw(WrongResultError("other")), "WrongResultError: other"),
        (lambda: (_ for _ in ()).throw(UncutError("long\n" * 13)), "a message of 13 lines"),
        (lambda: (_ for _ in ()).throw(GraphError("")), "a message of 0 lines"),
        (lambda: bytearray(2 * MEMORY_BYTES), "memory: MemoryError"),
    ],
    ids=["another exception", "wrong result", "long message", "no message", "memory"],
)
def test_what_is_forbidden_is_told(fault: object, match: str) -> None:
    def case(draw: random.Random, number: int) -> None:
        if number == 1:
            fault()  # type: ignore[operator]

    counts, forbidden = tried(case)
    assert counts == {"accepted": 2, "forbidden": 1}
    assert forbidden[0][0] == 1
    assert match in forbidden[0][1]


def test_a_process_that_dies_or_hangs_is_told_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def case(draw: random.Random, number: int) -> None:
        if number == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 1:
            time.sleep(60)

    monkeypatch.setattr(campaign, "SECONDS", 3.0)
    counts, forbidden = tried(case)
    assert counts == {"accepted": 1, "forbidden": 2}
    assert forbidden == [
        (0, "the process ended with SIGKILL"),
        (1, "it took more than 3 seconds"),
    ]


def test_cases_are_the_same_in_every_process() -> None:
    content = bytes(range(200))
    first = [mutated(random.Random(f"x {n}"), content) for n in range(20)]
    assert first == [mutated(random.Random(f"x {n}"), content) for n in range(20)]
    assert len(set(first)) > 15
