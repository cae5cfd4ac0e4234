"""The command line of the checkpoint store."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from headrace_train.checkpoint import CheckpointDirectory, write_checkpoint
from headrace_train.checkpoint.cli import main

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.h5"
    tensors = {"layer/w": np.zeros((2, 3), np.float32), "words": np.array([b"ab"], object)}
    write_checkpoint(path, tensors, step=5, metadata={"epochs": 2})
    return path


def test_ls(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ls", str(file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{file}: 2 tensors, {file.stat().st_size} bytes"
    assert lines[1] == "step: 5"
    assert lines[2].startswith("written by: headrace-core ")
    assert lines[3] == 'metadata: {"epochs": 2}'
    assert [line[:-8] for line in lines[4:]] == [
        "layer/w  float32[2, 3]  24 bytes  crc32 ",
        "words    string[1]      2 bytes   crc32 ",
    ]


def test_ls_as_json(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ls", "--json", str(file)]) == 0
    content = json.loads(capsys.readouterr().out)
    assert (content["step"], content["metadata"]) == (5, {"epochs": 2})
    assert [(t["name"], t["dtype"], t["shape"]) for t in content["tensors"]] == [
        ("layer/w", "float32", [2, 3]),
        ("words", "string", [1]),
    ]


def test_ls_of_an_empty_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_checkpoint(tmp_path / "a.h5", {})
    assert main(["ls", str(tmp_path / "a.h5")]) == 0
    assert "0 tensors" in capsys.readouterr().out


def test_a_folder_stands_for_its_latest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ls", str(tmp_path)]) == 2
    assert "no sound checkpoint in the folder" in capsys.readouterr().err
    CheckpointDirectory(tmp_path).write("model-3.h5", {"x": np.zeros(1)}, step=3)
    assert main(["verify", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'model-3.h5'}: sound, 1 tensors\n"


def test_verify(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damaged, foreign = file.with_name("damaged.h5"), file.with_name("foreign.h5")
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    damaged.write_bytes(content)
    foreign.write_text("hello")
    assert main(["verify", str(file)]) == 0
    assert main(["verify", str(file), str(damaged)]) == 1
    assert main(["verify", str(foreign), str(damaged), str(file)]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert f"{file}: sound, 2 tensors" in lines
    assert f"{damaged} is damaged:" in lines
    assert any(line.startswith(f"{foreign} is not a Headrace checkpoint") for line in lines)


def test_diff(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = tmp_path / "a.h5", tmp_path / "b.h5"
    write_checkpoint(
        first, {"same": np.ones(2), "values": np.ones(2), "shape": np.ones(2), "gone": 1}
    )
    write_checkpoint(
        second,
        {"same": np.ones(2), "values": np.zeros(2), "shape": np.ones(3), "more": True},
        step=1,
    )
    assert main(["diff", str(first), str(first)]) == 0
    assert capsys.readouterr().out == ""
    assert main(["diff", str(first), str(second)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "~  (step)  None -> 1",
        "~  values  float64[2], other values",
        "~  shape   float64[2] -> float64[3]",
        "-  gone    int64[]",
        "+  more    bool[]",
    ]


def test_runs_as_a_module(file: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "headrace_train.checkpoint", "verify", str(file)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{file}: sound, 2 tensors\n"


def test_refuses_unknown_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["rm", "x"])
    assert "invalid choice" in capsys.readouterr().err
