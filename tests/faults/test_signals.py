"""One signal of each kind ends a training program soon, and loses no checkpoint."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from .signals import PHASES, interrupted

pytestmark = [
    pytest.mark.needs("autodiff", "backend-cpu", "io", "train"),
    # Each starts a process; ``nox -s faults`` starts hundreds.
    pytest.mark.slow,
    pytest.mark.timeout(200),
]


@pytest.mark.parametrize("phase", PHASES)
def test_an_interrupt_ends_every_phase(phase: str, tmp_path: Path) -> None:
    assert interrupted(tmp_path, phase, signal.SIGINT, 0.05).fault == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_other_signals_end_a_save(number: signal.Signals, tmp_path: Path) -> None:
    assert interrupted(tmp_path, "save", number, 0.05).fault == ""
