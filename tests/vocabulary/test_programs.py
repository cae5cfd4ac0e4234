"""Programs that TensorFlow's own tests write: the same outcomes, compiled and plain."""

from __future__ import annotations

from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from tests.vocabulary.generate_outcomes import difference, outcome, read

pytestmark = [
    pytest.mark.needs("backend-cpu", "autodiff", "train", "io"),
    pytest.mark.timeout(60),
]

FILES = sorted((Path(__file__).parent / "programs").glob("*.txt"))
PROGRAMS = [
    pytest.param(program, expected, id=f"{path.stem}-{title}")
    for path in FILES
    for title, program, expected in read(path.read_text("utf-8"))
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("program", "expected"), PROGRAMS)
def test_programs_come_to_what_tensorflow_makes_of_them(program: str, expected: Any) -> None:
    for config in (hr.Config(executor="plain"), hr.Config(compile_after=0)):
        # Some leave blocks crosswise, so that a default session would stay for other tests.
        made = copy_context()
        found = made.run(outcome, hr, program, lambda config=config: hr.Session(config=config))
        assert not difference(found, expected), program
