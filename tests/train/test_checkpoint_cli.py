"""The command line of the checkpoint store."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from headrace_train.checkpoint import update_checkpoint_state, write_checkpoint
from headrace_train.checkpoint.cli import main
from headrace_train.checkpoint.differences import difference
from tests.children import run_python

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
    lines = ["float32  [2,3]  24  layer/w", "string   [1]    2   words"]
    assert capsys.readouterr().out.splitlines() == lines
    assert main(["ls", "--about", str(file)]) == 0
    about = capsys.readouterr().out.splitlines()
    assert about[0] == f"{file}: 2 tensors, {file.stat().st_size} bytes"
    assert about[1] == "step: 5"
    assert about[2].startswith("written by: headrace-core ")
    assert about[3] == 'metadata: {"epochs": 2}'
    assert about[4:] == lines


def test_ls_keeps_one_line_for_a_tensor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_checkpoint(tmp_path / "a.h5", {"two\nlines": 1.0, "two words": 2.0})
    assert main(["ls", str(tmp_path / "a.h5")]) == 0
    assert capsys.readouterr().out == "float64  []  8  'two\\nlines'\nfloat64  []  8  two words\n"


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
    assert capsys.readouterr().out == ""


def test_a_folder_stands_for_its_latest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ls", str(tmp_path)]) == 2
    assert "no sound checkpoint in the folder" in capsys.readouterr().err
    write_checkpoint(tmp_path / "model-3.h5", {"x": np.zeros(1)}, step=3)
    update_checkpoint_state(tmp_path, str(tmp_path / "model-3"))
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
        "~ (step): None -> 1",
        "~ values: float64[2], 2 of 2 elements differ, by up to 1 (relative 1)",
        "~ shape: float64[2] -> float64[3]",
        "- gone: int64[]",
        "+ more: bool[]",
    ]


_NAN = np.array(np.nan, np.float32)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ([1.0, 2.0, 4.0], [1.0, 2.5, 4.0], "1 of 3 elements differ, by up to 0.5 (relative 0.2)"),
        ([_NAN], [_NAN], ""),
        ([0.0], [-0.0], "1 of 1 elements differ, by up to 0 (relative 0)"),
        ([1.0, 1.0], [np.nan, 3.0], "2 of 2 elements differ, 1 of them in what is not finite, by"),
        ([1.0], [np.inf], "1 of 1 elements differ, 1 of them in what is not finite"),
        (np.int64([2**63 - 1]), np.int64([-1]), "differ, by up to 9.22337e+18 (relative 1)"),
        (np.complex64([1j]), np.complex64([0]), "differ, by up to 1 (relative 1)"),
        (np.array([True, False]), np.array([True, True]), "1 of 2 elements differ"),
        (np.array([b"a", b"b"], object), np.array([b"a", b""], object), "1 of 2 elements differ"),
        (np.zeros((0, 3)), np.zeros((0, 3)), ""),
        (np.float16(1), np.float16(1.5), "1 of 1 elements differ, by up to 0.5 (relative 0.333)"),
    ],
)
def test_by_how_much_tensors_differ(old: Any, new: Any, said: str) -> None:
    found = difference(np.asarray(old), np.asarray(new))
    assert (said in found) if said else found == ""


def test_formats_are_compared_and_converted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours, bundle, back = (str(tmp_path / name) for name in ("a", "b", "c"))
    tensors = {
        "w": np.arange(6, dtype=np.float32).reshape(2, 3),
        "words": np.array([b"a\0", b""], object),
        "empty": np.zeros((0, 2), np.int8),
    }
    write_checkpoint(f"{ours}.h5", {**tensors, "global_step": np.int64(5)}, step=5)
    assert main(["convert", ours, bundle]) == 0
    assert main(["convert", bundle, back]) == 0
    assert capsys.readouterr().out == f"{bundle}: 4 tensors\n{back}.h5: 4 tensors\n"
    assert main(["diff", ours, bundle]) == main(["diff", f"{bundle}.index", f"{back}.h5"]) == 0
    assert main(["verify", bundle, back]) == 0
    assert capsys.readouterr().out == (f"{bundle}: sound, 4 tensors\n{back}.h5: sound, 4 tensors\n")
    assert main(["ls", "--about", bundle]) == 0
    assert capsys.readouterr().out.splitlines()[1:3] == [
        "step: 5",
        "written by: format TensorFlow V2",
    ]
    data = tmp_path / "b.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:-1] + b"\xff")
    assert main(["verify", bundle]) == 1
    assert "tensor 'words': its checksum is" in capsys.readouterr().out
    assert main(["diff", ours, bundle]) == 2
    assert "is damaged: tensor 'words'" in capsys.readouterr().err


def test_what_a_bundle_cannot_hold_is_named(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", str(file), str(file.parent / "b")]) == 0
    assert capsys.readouterr().err == (
        "left out, as bundles cannot hold it: the step 5, metadata 'epochs'\n"
    )


def test_a_copy_in_the_same_format(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "--to", "hdf5", str(file), str(file.parent / "b.h5")]) == 0
    assert main(["diff", str(file), str(file.parent / "b")]) == 0


@pytest.mark.parametrize(("to", "there"), [("v2", "b.index"), ("hdf5", "b.h5")])
def test_nothing_is_overwritten(
    file: Path, to: str, there: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (file.parent / there).write_bytes(b"mine")
    assert main(["convert", "--to", to, str(file), str(file.parent / "b")]) == 2
    assert f"{there} is there already" in capsys.readouterr().err
    assert (file.parent / there).read_bytes() == b"mine"


def test_runs_as_a_module(file: Path) -> None:
    done = run_python("-m", "headrace", "checkpoint", "verify", file, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{file}: sound, 2 tensors\n"


def test_refuses_unknown_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["rm", "x"])
    assert "invalid choice" in capsys.readouterr().err
