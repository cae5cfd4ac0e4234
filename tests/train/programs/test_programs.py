"""Programs as users of TensorFlow 1.15 write them come to what they come to there."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as hr

from .generate_outcomes import difference, outcome, read

pytestmark = [
    pytest.mark.needs("autodiff", "backend-cpu", "data", "io", "train"),
    # Programs of all kinds: some leave threads and files to be collected, as TensorFlow's do.
    pytest.mark.filterwarnings("default"),
    pytest.mark.timeout(60),
]

FILES = sorted(Path(__file__).parent.glob("*.txt"))
PROGRAMS = [
    pytest.param(program, expected, id=f"{path.stem}-{title}")
    for path in FILES
    for title, program, expected in read(path.read_text("utf-8"))
]


@pytest.fixture(autouse=True)
def loggers() -> Iterator[None]:
    """Leave logging as it was: programs choose what is shown."""
    logger = logging.getLogger("headrace")
    before = logger.level, list(logger.handlers), logger.propagate
    yield
    logger.setLevel(before[0])
    logger.handlers[:], logger.propagate = before[1], before[2]


@pytest.mark.parametrize(("program", "expected"), PROGRAMS)
def test_a_program_comes_to_what_it_does_in_tensorflow(program: str, expected: Any) -> None:
    found = difference(outcome(hr, program), expected)
    assert not found, program


def test_there_are_many_programs_and_each_has_a_title_of_its_own() -> None:
    titles = [parameter.id for parameter in PROGRAMS]
    assert len(titles) == len(set(titles)) >= 250
