"""Calls with odd arguments come to the same in TensorFlow 1.15, where there is one.

``TENSORFLOW_PYTHON=/path/to/python nox -s oracles`` runs 3000 of them, 75 programs of conditions
and loops inside of one another, and 300 of levels of ranges and of crosses; ``VOCABULARY_CALLS``
says how many other calls, and ``VOCABULARY_SEED`` which. Each difference is printed.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from tests.vocabulary.explanations import EXPLAINED, HOLDS, explained
from tests.vocabulary.generate_outcomes import difference, outcome
from tests.vocabulary.odd_calls import programs
from tests.vocabulary.odd_levels import odd_levels
from tests.vocabulary.odd_nests import nests

PYTHON = os.environ.get("TENSORFLOW_PYTHON", "")
COUNT = int(os.environ.get("VOCABULARY_CALLS", "3000"))
SEED = int(os.environ.get("VOCABULARY_SEED", "15"))

# A call takes milliseconds, and the import of TensorFlow some seconds.
LONG = 60.0


def outcomes_of_tensorflow(calls: list[str], folder: Path) -> list[Any]:
    """Return what programs come to in TensorFlow, whose process some of them end."""
    given, made = folder / "programs.json", folder / "outcomes"
    script = Path(__file__).parent / "generate_outcomes.py"
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    made.write_text("", "utf-8")
    while (done := len(made.read_text("utf-8").splitlines())) < len(calls):
        given.write_text(json.dumps(calls[done:]), "utf-8")
        command = [PYTHON, str(script), "--outcomes", str(given), str(made)]
        ended = _ended(command, environment, made)
        if ended:
            with made.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"refused": ["Crash"], "message": f"exit {ended}"}) + "\n")
    return [json.loads(line) for line in made.read_text("utf-8").splitlines()]


def _ended(command: list[str], environment: dict[str, str], made: Path) -> int:
    """Return how a process ended, which is ended where one call yields nothing for long.

    Some steps of TensorFlow never end, now and then: determinants of what is no matrix, diagonals
    set in scalars.
    """
    with subprocess.Popen(command, env=environment) as process:
        size, since = -1, time.monotonic()
        while process.poll() is None:
            time.sleep(0.2)
            if made.stat().st_size != size:
                size, since = made.stat().st_size, time.monotonic()
            elif time.monotonic() - since > LONG:
                process.kill()
        return process.returncode


def test_calls_are_the_same_for_a_seed_and_differ_from_each_other() -> None:
    made = programs(200, 3)
    assert made == programs(200, 3)
    assert len(set(made)) == 200
    assert made != programs(200, 4)


def test_every_explanation_says_why() -> None:
    assert all(set(row) - {"holds"} == {"program", "difference", "why"} for row in EXPLAINED)
    assert {row["holds"] for row in EXPLAINED if "holds" in row} == set(HOLDS)


_DIVISION = (
    "x = T.constant(np.array([1.0]).astype('float32').reshape((1,)))\ny = T.truncatediv(x, {0})"
)
_LOSS = "x = T.constant(np.array([2, 1]) / 2)\ny = T.losses.log_loss(x, x)"
_FED = "T.placeholder_with_default(np.array([{1}], np.int32), None)"
_SUM = (
    "x = (np.array([1, 2]) / 2).astype('float32').reshape(({0}))\ny = T.reduce_sum(x, axis=" + _FED
)


@pytest.mark.parametrize(
    ("program", "found", "stays"),
    [
        (_DIVISION, "part 0 is ['0', '-1', 'inf'], TensorFlow's ['0.75', '-1.5', 'nan']", True),
        (_DIVISION, "part 0 is ['1'], TensorFlow's ['0.9999999']", True),
        (_DIVISION, "part 0 is ['1'], TensorFlow's ['0.75']", False),
        (_DIVISION, "part 0 is ['0'], TensorFlow's ['nan']", False),
        (_DIVISION, "part 0 has shape [1], TensorFlow's []", False),
        (_LOSS, "part 0 is ['16.1181', '0.7'], TensorFlow's ['15.94238', '0.7']", True),
        (_LOSS, "part 1 is ['2e+07'], TensorFlow's ['1.677722e+07']", True),
        (_LOSS, "part 0 is ['16.1181'], TensorFlow's ['16.9']", False),
        (_LOSS, "part 0 is ['1.7'], TensorFlow's ['0.7']", False),
        (_SUM.format("1, 2", "0, -2"), "part 0 has shape [2], TensorFlow's []", True),
        (_SUM.format("1, 2", "0, 1"), "part 0 has shape [2], TensorFlow's []", False),
        (_SUM.format("1, 2, 1", "0, 0"), "part 0 has shape [2, 1], TensorFlow's []", False),
        (_SUM.format("1, 2", "1, 1"), "part 0 has shape [1, 2], TensorFlow's [1, 1]", True),
        (_SUM.format("1, 2", "1, 1"), "part 0 has shape [1, 2], TensorFlow's [1]", False),
    ],
)
def test_explanations_look_at_values_and_axes(program: str, found: str, stays: bool) -> None:
    assert explained(program, found) is stays


# What ours may be where another thing is refused, or another value found: no row explains these.
_OURS = "ours {'result': [{'static': [1], 'dtype': 'float32', 'shape': [1], 'value': ['nan']}]}"
_REFUSED = "TensorFlow's {'refused': ['ValueError', 'Exception', 'BaseException'], 'message': "
_UNEXPLAINED = [
    f"{_OURS}, {_REFUSED}'Shape must be rank 0 but is rank 1 for an op of shapes [2], [1].'}}",
    f"{_OURS}, {_REFUSED}'assertion failed: [width must be > 0.]'}}",
    f"{_OURS}, {_REFUSED}'axis must be a scalar, not [1]'}}",
    "part 0 is ['1'], TensorFlow's ['2']",
    "part 0 has dtype float32, TensorFlow's int32",
    "part 0 has shape [2], TensorFlow's [1, 2]",
    "part 1 is {'is': None}, TensorFlow's {'static': [0], 'dtype': 'float32', 'shape': [0]}",
]


@pytest.mark.parametrize("found", _UNEXPLAINED)
def test_explanations_look_at_what_tensorflow_says_and_at_the_function(found: str) -> None:
    calls = programs(1000, 5)
    wrong = [program for program in calls if explained(program, found)]
    # Rows may explain a value or a dtype of a function, never of most.
    assert len(wrong) <= (20 if found.startswith(("part 0 is", "part 0 has dtype")) else 0), wrong


def test_a_gradient_that_is_not_there_differs_from_one_of_nothing() -> None:
    nothing = {"static": [0], "dtype": "float32", "shape": [0], "value": []}
    missing: dict[str, Any] = {"is": None}
    assert difference({"result": [missing]}, {"result": [nothing]})
    assert difference({"result": [nothing]}, {"result": [missing]})
    # An array has no static shape to compare.
    array = {key: nothing[key] for key in ("dtype", "shape", "value")}
    assert not difference({"result": [nothing]}, {"result": [array]})


@pytest.mark.needs("backend-cpu", "autodiff")
def test_odd_calls_yield_a_result_or_one_of_our_errors() -> None:
    config = hr.Config(executor="plain")
    python = {"TypeError", "AttributeError", "ValueError", "IndexError", "KeyError"}
    for program in programs(150, 7):
        found = outcome(hr, program, lambda: hr.Session(config=config))
        refused = found.get("refused", ["HeadraceError"])
        assert "HeadraceError" in refused or refused[0] in python, (program, found)


def test_nests_are_the_same_for_a_seed_and_differ_from_each_other() -> None:
    made = nests(100, 3)
    assert made == nests(100, 3)
    assert len(set(made)) == 100
    assert made != nests(100, 4)


def test_levels_are_the_same_for_a_seed_and_differ_from_each_other() -> None:
    made = odd_levels(100, 3)
    assert made == odd_levels(100, 3)
    assert len(set(made)) == 100
    assert made != odd_levels(100, 4)


@pytest.mark.needs("backend-cpu")
def test_levels_come_to_the_same_compiled_and_plain() -> None:
    configs = (hr.Config(executor="plain"), hr.Config(compile_after=0))
    for program in odd_levels(60, 5):
        plain, compiled = (
            outcome(hr, program, lambda config=config: hr.Session(config=config))
            for config in configs
        )
        assert "result" in plain, (program, plain)
        assert not difference(compiled, plain, 0, 0), program


@pytest.mark.needs("backend-cpu", "autodiff")
@pytest.mark.parametrize("seed", range(3))
def test_nests_come_to_the_same_compiled_and_plain(seed: int) -> None:
    configs = (hr.Config(executor="plain"), hr.Config(compile_after=0))
    refused = 0
    for program in nests(6, seed):
        plain, compiled = (
            outcome(hr, program, lambda config=config: hr.Session(config=config))
            for config in configs
        )
        refused += "refused" in plain
        assert not difference(compiled, plain), program
    # Some lists do not tell how long they are, where a loop wants to know.
    assert refused <= 2


@pytest.mark.slow
@pytest.mark.skipif(not PYTHON, reason="TENSORFLOW_PYTHON names no Python")
@pytest.mark.timeout(1800)
def test_levels_come_to_what_tensorflow_makes_of_them(tmp_path: Path) -> None:
    calls = odd_levels(max(1, COUNT // 10), SEED)
    config = hr.Config(executor="plain")
    lost = []
    for program, theirs in zip(calls, outcomes_of_tensorflow(calls, tmp_path), strict=True):
        ours = outcome(hr, program, lambda: hr.Session(config=config))
        found = difference(ours, theirs, 0, 0)
        if found:
            lost.append(f"{program}\n  -> {found}")
    assert not lost, f"{len(lost)} of {len(calls)} differ\n" + "\n\n".join(lost)


@pytest.mark.slow
@pytest.mark.skipif(not PYTHON, reason="TENSORFLOW_PYTHON names no Python")
@pytest.mark.timeout(1800)
def test_nests_come_to_what_tensorflow_makes_of_them(tmp_path: Path) -> None:
    calls = nests(max(1, COUNT // 40), SEED)
    lost = []
    for program, theirs in zip(calls, outcomes_of_tensorflow(calls, tmp_path), strict=True):
        for config in (hr.Config(executor="plain"), hr.Config(compile_after=0)):
            ours = outcome(hr, program, lambda config=config: hr.Session(config=config))
            found = difference(ours, theirs)
            if found and not explained(program, found):
                lost.append(f"{program}\n  -> {found}")
    assert not lost, f"{len(lost)} of {len(calls)} differ\n" + "\n\n".join(lost)


@pytest.mark.slow
@pytest.mark.skipif(not PYTHON, reason="TENSORFLOW_PYTHON names no Python")
@pytest.mark.timeout(1800)
def test_odd_calls_come_to_what_tensorflow_makes_of_them(tmp_path: Path) -> None:
    calls = programs(COUNT, SEED)
    config = hr.Config(executor="plain")
    lost = []
    for program, theirs in zip(calls, outcomes_of_tensorflow(calls, tmp_path), strict=True):
        ours = outcome(hr, program, lambda: hr.Session(config=config))
        found = difference(ours, theirs)
        if found and not explained(program, found):
            lost.append(f"{program}\n  -> {found}")
    assert not lost, f"{len(lost)} of {len(calls)} differ\n" + "\n\n".join(lost)
