"""The program that times networks on a GPU, with participants that only count."""

from __future__ import annotations

import json
import sys

import pytest

from benchmarks.gpu import program
from benchmarks.gpu.participants import Trainer


class Counted:
    def __init__(self):
        self.steps = self.waits = 0

    def step(self):
        self.steps += 1

    def loss(self):
        self.step()
        return 1.0 / self.steps

    def wait(self):
        self.waits += 1


@pytest.fixture
def counted(monkeypatch):
    made = {}

    def build(task, precision):
        one = made[task.batch, precision] = Counted()
        return Trainer(one.step, one.loss, one.wait)

    def fail(task, precision):
        raise RuntimeError("no such GPU")

    monkeypatch.setattr(program, "PARTICIPANTS", {"counts": build, "fails": fail})
    monkeypatch.setattr(program, "_ROUND_S", 1e-4)
    return made


def test_each_participant_is_timed_and_what_fails_leaves_the_run(counted, monkeypatch, tmp_path):
    path = tmp_path / "found.json"
    arguments = ["--networks", "mlp", "--precisions", "tf32", "highest", "--rounds", "3"]
    monkeypatch.setattr(sys, "argv", ["program", str(path), *arguments, "--participants", "counts"])
    program.main()
    found = json.loads(path.read_text())
    assert list(found) == ["mlp tf32", "mlp highest"]
    for row in found.values():
        assert row["counts"]["losses"] == [1 / (n + 1) for n in range(6)]
        assert row["counts"]["step_s"] > 0
    assert set(counted) == {(128, "tf32"), (128, "highest")}
    assert all(one.waits > 6 for one in counted.values())


def test_what_fails_says_why(counted, capsys):
    found = program.measure(program.TASKS["mlp"], "tf32", ["fails", "counts"], 2)
    assert found["fails"] == {"failed": "RuntimeError: no such GPU"}
    assert found["counts"]["step_s"] > 0
    assert "no such GPU" in capsys.readouterr().err
