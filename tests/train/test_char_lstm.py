"""The character LSTM: its loop equals its unrolled twin, and it learns."""

from __future__ import annotations

import importlib
import os
import re
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import ArgumentTypeError, DatasetError
from tests.children import run_python

pytestmark = [
    pytest.mark.needs("backend-cpu", "autodiff", "train"),
    pytest.mark.usefixtures("no_races"),
]
EXAMPLES = Path(__file__).parents[2] / "examples"
# After so many steps the loss is below two nats per character, with a tenth to spare.
STEPS = 800


@pytest.fixture
def char_lstm(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of the example."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.delitem(sys.modules, "char_lstm", raising=False)
    return importlib.import_module("char_lstm")


def found(char_lstm: Any, unrolled: bool) -> list[Any]:
    """Return loss and gradients of a small model at fixed weights."""
    with hr.Graph().as_default():
        hr.set_random_seed(3)
        model = char_lstm.CharacterModel(12, 8, 10, unrolled=unrolled)
        variables = [model.embedding, model.kernel, model.bias, model.projection]
        gradients = [hr.convert_to_tensor(g) for g in hr.gradients(model.loss, variables)]
        rng = np.random.default_rng(0)
        with hr.Session() as session:
            for variable in variables:
                value = rng.normal(0, 0.5, variable.shape.known).astype(np.float32)
                session.run(variable.assign(value))
            numbers = rng.integers(0, 12, (5, 11))
            feeds = {model.inputs: numbers[:, :-1], model.targets: numbers[:, 1:]}
            return session.run([model.loss, *gradients], feeds)


def test_the_loop_equals_its_unrolled_twin(char_lstm: Any) -> None:
    for looped, unrolled in zip(found(char_lstm, False), found(char_lstm, True), strict=True):
        np.testing.assert_allclose(looped, unrolled, rtol=1e-5, atol=1e-6)


def losses(text: Path | None, *options: str) -> list[float]:
    """Return the losses that the example prints."""
    named = [] if text is None else ["--text", str(text)]
    done = run_python(EXAMPLES / "char_lstm.py", *named, *options, timeout_s=280.0)
    return [float(loss) for loss in re.findall(r"loss ([\d.]+) nats", done.stdout)]


@pytest.mark.slow
def test_it_learns_a_text_that_repeats(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the quick brown fox jumps over the lazy dog. " * 50)
    small = ("--units=48", "--length=16", "--batch=16", "--steps=200")
    first, last = losses(text, *small)
    assert last < 0.7 < first


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(not os.environ.get("HEADRACE_DATA"), reason="HEADRACE_DATA is not set")
def test_it_learns_the_text_corpus() -> None:
    assert losses(None, f"--steps={STEPS}")[-1] < 2.0


def test_texts(tmp_path: Path) -> None:
    load_text = hr.train.datasets.load_text
    file = tmp_path / "a.txt"
    file.write_text("abcab")
    text = load_text(file)
    assert text.characters == ["a", "b", "c"]
    assert text.numbers.tolist() == [0, 1, 2, 0, 1]
    inputs, targets = next(text.batches(4, 2))
    assert inputs.shape == targets.shape == (4, 2)
    np.testing.assert_array_equal(inputs[:, 1], targets[:, 0])
    with pytest.raises(DatasetError, match="a piece needs 6"):
        next(text.batches(1, 5))
    for arguments, message in (
        ((Decimal("NaN"), 2), "size must be a whole number"),
        ((1, Decimal("NaN")), "length must be a whole number"),
        ((1, 0), "length must be at least 1, got 0"),
        ((-1, 2), "size must be at least 0, got -1"),
    ):
        with pytest.raises(ValueError, match=message):
            next(text.batches(*arguments))
    with pytest.raises(ArgumentTypeError, match="seed must be a whole number"):
        next(text.batches(1, 2, seed="a"))
    file.write_text("")
    with pytest.raises(DatasetError, match="empty text"):
        load_text(file)
    file.write_bytes(b"\xff\xfe\xff")
    with pytest.raises(DatasetError, match="no UTF-8 text"):
        load_text(file)
    with pytest.raises(DatasetError, match="there is no file"):
        load_text(tmp_path / "missing.txt")


def test_the_text_of_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADRACE_DATA", raising=False)
    with pytest.raises(DatasetError, match="set HEADRACE_DATA"):
        hr.train.datasets.load_text()
    monkeypatch.setenv("HEADRACE_DATA", str(tmp_path))
    with pytest.raises(DatasetError, match="because HEADRACE_DATA is"):
        hr.train.datasets.load_text()
