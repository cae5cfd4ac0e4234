"""``python -m headrace serve``: what it prints, how it is stopped, and what it refuses."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

import headrace as hr
from tests.serve.serving import Answer, ask

pytestmark = pytest.mark.needs("backend-cpu")

LIMIT = 50.0


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved model whose steps take as many turns of a loop as its input says."""
    folder = tmp_path_factory.mktemp("exported") / "turns"
    with hr.Graph().as_default(), hr.Session() as session:
        x = hr.placeholder(hr.float32, [None], name="x")

        # Counted in float64: a float32 stays as it is from 2**24 on.
        first, last = hr.constant(0.0, hr.float64), hr.cast(hr.reduce_max(x), hr.float64)

        def turn(i: hr.Tensor, y: hr.Tensor) -> tuple[hr.Tensor, hr.Tensor]:
            return i + 1.0, hr.sqrt(y + 2.0)

        _, y = hr.while_loop(lambda i, y: i < last, turn, [first, x])
        hr.saved_model.simple_save(session, str(folder), {"x": x}, {"y": y})
    return folder


@contextmanager
def serving(out: Path, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Run the command; yields the process and what addresses start with. It writes into a file."""
    with out.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "headrace", "serve", "--port", "0", *words],
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONWARNINGS": "error"},
        )
    try:
        end = time.monotonic() + LIMIT
        while (found := re.search(r"(http://\S+?)/v1", out.read_text())) is None:
            assert process.poll() is None, out.read_text()
            assert time.monotonic() < end, out.read_text()
            time.sleep(0.02)
        yield process, found[1]
    finally:
        process.kill()
        process.wait(LIMIT)


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGTERM, id="term"),
        pytest.param(signal.SIGINT, id="int", marks=pytest.mark.slow),
    ],
)
def test_a_signal_lets_it_answer_what_is_in_flight(
    model: Path, tmp_path: Path, number: signal.Signals
) -> None:
    out = tmp_path / "out"
    with serving(out, str(model)) as (process, url), ThreadPoolExecutor(1) as pool:
        assert ask(url, "/v1/models/turns:predict", {"instances": [0.0]}).status == 200
        turns = 30_000.0
        while True:
            # As many turns as are under way for a while, whatever the machine is.
            slow = pool.submit(ask, url, "/v1/models/turns:predict", {"instances": [turns]})
            time.sleep(0.3)
            if not slow.done():
                break
            turns *= 4
        process.send_signal(number)
        answer: Answer = slow.result(LIMIT)
        assert answer.status == 200
        assert answer.data["predictions"] == pytest.approx([2.0])
        assert process.wait(LIMIT) == 0, out.read_text()
    assert f"{url}/v1/models/turns answers: versions 1\n" in out.read_text()
    assert out.read_text().endswith("stopped\n")
    with pytest.raises(ConnectionError):
        ask(url, "/livez")


def test_names_limits_and_the_address_are_options(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = [
        "--host",
        "0.0.0.0",
        f"a={model}",
        f"b={model}",
        "--max-body",
        "100",
        "--max-delay",
        "0.001",
        "--no-pad",
    ]
    with serving(out, *words) as (process, url):
        # It is reached from other machines, too, and says so.
        assert out.read_text().startswith("warning: http://0.0.0.0:")
        assert ask(url, "/v1/models/a:predict", {"instances": [0.0]}).status == 200
        assert ask(url, "/v1/models/b:predict", {"instances": [0.0] * 100}).status == 413
        process.terminate()
        assert process.wait(LIMIT) == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["missing"], "missing holds no saved model: expected one, or folders"),
        (["a", "b"], "with several models, name each: expected NAME=FOLDER NAME=FOLDER"),
        (["--steps", "0", "a"], "steps: expected a whole number >= 1, got 0"),
        (["--port", "x", "a"], "argument --port: invalid int value: 'x'"),
        ([], "the following arguments are required: MODEL"),
    ],
)
def test_mistakes_are_one_message(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from headrace.cli.main import main

    try:
        code = main(["serve", *words])
    except SystemExit as ended:
        code = int(str(ended.code))
    assert code == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert "Traceback" not in captured.err


def test_the_list_of_commands_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    from headrace.cli.main import main

    with pytest.raises(SystemExit):
        main(["--help"])
    assert "answer for saved models over HTTP, in JSON" in capsys.readouterr().out
