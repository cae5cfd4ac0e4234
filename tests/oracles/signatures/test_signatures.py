"""Names, arguments, their order and defaults are TensorFlow 1.15's, or a reason is written down.

``tensorflow.txt`` holds the names of TensorFlow, ``reasons.json`` why some differences stay, and
``gaps.txt`` what is missing yet. ``python -m tests.oracles.signatures`` prints what is in none.
"""

from __future__ import annotations

import types

import pytest

import headrace as hr

from .compare import Difference, differences, gaps, parsed, reasons, recorded, told_apart

pytestmark = pytest.mark.needs("autodiff", "backend-cpu", "data", "dist-mpi", "io", "train")


@pytest.fixture(scope="module")
def found() -> list[Difference]:
    return differences(hr, recorded())


def test_the_table_holds_all_of_tensorflows_names() -> None:
    lines = recorded()
    names = {line.name for line in lines}
    assert len(lines) == len({(line.kind, line.name) for line in lines}) > 3000
    assert {"train.Saver.save", "layers.dense", "metrics.auc", "data.Dataset.map"} <= names


def test_a_name_is_as_in_tensorflow_or_a_reason_is_written_down(found: list[Difference]) -> None:
    known, lacking = reasons(), gaps()
    lost = [
        str(difference)
        for difference in found
        if not any(reason.explains(difference) for reason in known)
        and str(difference) not in lacking
    ]
    assert not lost, "\n".join(lost)


def test_every_reason_explains_something(found: list[Difference]) -> None:
    idle = [r.name for r in reasons() if not any(r.explains(difference) for difference in found)]
    assert not idle
    assert all(reason.why for reason in reasons())


@pytest.mark.parametrize(
    ("theirs", "ours", "told"),
    [
        ("(x, name=None)", "(x, name=None)", []),
        ("(x, name=None)", "(x, name=None, more=0)", []),
        ("(x, name=None)", "(x, *, name=None)", ["order x; TensorFlow's x, name"]),
        ("(x, y)", "(y, x)", ["order y, x; TensorFlow's x, y"]),
        ("(x, y=1)", "(x, y=2)", ["y is 2 by default, TensorFlow's 1"]),
        ("(x, y=1)", "(x, y=1.0)", []),
        ("(x, y=1)", "(x, y)", ["y is required, TensorFlow's 1"]),
        ("(x, y)", "(x, y=None)", []),
        ("(x)", "(x, y)", ["asks for y"]),
        ("(x, y=1)", "(x)", ["no argument y"]),
        ("(x, y=1)", "(x, **kwargs)", []),
        ("(*args, **kwargs)", "()", ["no *args", "no **kwargs"]),
    ],
)
def test_what_a_call_would_notice_is_told(theirs: str, ours: str, told: list[str]) -> None:
    assert told_apart(parsed(theirs), parsed(ours)) == told


def test_missing_modules_are_told_once_and_kinds_are_compared() -> None:
    library = types.SimpleNamespace(relu=3, Saver=lambda: None, nn=types.SimpleNamespace())
    wanted = ("train.", "nn.relu")
    lines = [line for line in recorded() if f"{line.name}.".startswith(wanted)]
    told = [str(difference) for difference in differences(library, lines)]
    assert told == [
        "nn.relu: missing function",
        "nn.relu6: missing function",
        "nn.relu_layer: missing function",
        "train: missing module",
    ]
