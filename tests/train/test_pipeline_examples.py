"""The examples of input pipelines run on small texts, learn, and end when their epochs do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.children import run_python

pytestmark = [
    pytest.mark.needs("backend-cpu", "autodiff", "io", "train"),
    pytest.mark.usefixtures("no_races"),
]

EXAMPLES = Path(__file__).parents[2] / "examples"
LINES = [f"{i % 7} bottles of water hang on the wall of {'x' * (i % 23)}" for i in range(300)]


def run(name: str, *arguments: str, cwd: Path) -> str:
    """Return what an example prints; all it tells of is on standard output."""
    command = ("-W", "error", EXAMPLES / name, *arguments)
    done = run_python(*command, env={"HEADRACE_DATA": None}, cwd=cwd, timeout_s=55.0)
    assert "Error" not in done.stderr
    return done.stdout


def last_loss(printed: str) -> float:
    return float(re.findall(r"loss ([\d.]+)", printed)[-1])


@pytest.fixture
def texts(tmp_path: Path) -> list[str]:
    """The names of two files with lines."""
    files = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for i, file in enumerate(files):
        file.write_text("\n".join(LINES[i::2]) + "\n")
    return list(map(str, files))


@pytest.mark.slow
def test_the_training_application_saves_and_goes_on(texts: list[str], tmp_path: Path) -> None:
    options = ("--epochs=8", "--batch=32", "--save-every=0.2")
    first = run("training_application.py", *texts, *options, cwd=tmp_path)
    # 300 lines, all long enough, 8 times, make 75 batches of 32.
    assert "saved to checkpoints/characters-75" in first
    second = run("training_application.py", *texts, *options, cwd=tmp_path)
    assert second.startswith("going on from checkpoints/characters-75\n")
    assert "saved to checkpoints/characters-150" in second
    assert last_loss(second) < last_loss(first) < 5.6


def test_the_training_application_says_what_it_needs(tmp_path: Path) -> None:
    done = run_python(
        EXAMPLES / "training_application.py", tmp_path / "none.txt", cwd=tmp_path, check=False
    )
    assert done.returncode == 1
    assert "NotFoundError" in done.stderr
    assert "none.txt" in done.stderr


@pytest.mark.slow
def test_bucketed_lines_waste_little(texts: list[str], tmp_path: Path) -> None:
    def padding(*boundaries: str) -> int:
        printed = run(
            *("bucketed_lines.py", f"--text={texts[0]}", "--units=8", "--batch=8", "--epochs=2"),
            *("--boundaries", *boundaries),
            cwd=tmp_path,
        )
        assert last_loss(printed) < 5.0
        return int(printed.split("; ")[1].split(" %")[0])

    assert padding("40", "50") < padding("1000")


@pytest.mark.slow
@pytest.mark.parametrize(
    "source", ["queues", pytest.param("data", marks=pytest.mark.needs("data"))]
)
def test_digits_from_records(source: str, tmp_path: Path) -> None:
    options = ("--epochs=4", f"--input={source}", f"--records={tmp_path}")
    printed = run("mnist_tfrecords.py", *options, cwd=tmp_path)
    steps, accuracy = re.findall(r"(\d+) steps, test accuracy ([\d.]+)", printed)[0]
    # 1438 examples, 4 times, make 57 batches of 100.
    assert int(steps) == 57
    assert float(accuracy) > 0.9
    assert len(list(tmp_path.glob("*.tfrecords"))) == 4
