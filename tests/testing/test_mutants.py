"""The kit finds nothing in a correct plugin, and every fault that is put into it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.testing.mutants.mutant import SOURCE, Mutant
from tests.testing.mutants.table import MUTANTS, PAGE, page

# A hundred checks in a process of their own: a machine that does other things takes its time.
pytestmark = [pytest.mark.needs("backend-cpu", "autodiff"), pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def kit_on() -> Iterator[Callable[[str], str]]:
    """What the kit says of the plugin with a fault, by its name, or without one."""
    command = [sys.executable, "-m", "tests.testing.mutants"]
    with subprocess.Popen(
        command,
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, stdout = process.stdin, process.stdout

        def ask(name: str) -> str:
            stdin.write(json.dumps(name) + "\n")
            stdin.flush()
            return str(json.loads(stdout.readline()))

        yield ask
        stdin.close()


def test_nothing_is_wrong_with_the_plugin(kit_on: Callable[[str], str]) -> None:
    assert kit_on("without a fault") == ""


# Every twelfth in each run of the tests, all of them with the slow ones.
CASES = [
    pytest.param(
        mutant,
        id=mutant.name.replace(" ", "-"),
        marks=[pytest.mark.slow] if number % 12 else [],
    )
    for number, mutant in enumerate(MUTANTS)
]


@pytest.mark.parametrize("mutant", CASES)
def test_the_kit_names_the_fault(mutant: Mutant, kit_on: Callable[[str], str]) -> None:
    said = kit_on(mutant.name)
    assert said, "the kit finds nothing"
    assert not said.startswith("the kit itself fails"), said
    assert re.search(mutant.match, said), said


def test_faults_are_different_and_stand_in_the_source_once() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 40
    source = SOURCE.read_text(encoding="utf-8")
    assert not [m.name for m in MUTANTS if source.count(m.old) < 1]
    assert all(mutant.match for mutant in MUTANTS)


def test_the_page_of_the_documentation_lists_them() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m tests.testing.mutants --write"
