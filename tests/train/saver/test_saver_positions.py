"""A Saver saves positions of iterators with the variables, and a killed run goes on exactly."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import CheckpointError, UninitializedError
from tests.children import run_program

pytestmark = pytest.mark.needs("backend-cpu", "data")

PROGRAM = """
import json, sys
import numpy as np
import headrace as hr

folder, stop = sys.argv[1], int(sys.argv[2])
hr.set_random_seed(5)

def augment(x):
    return hr.cast(x, hr.float32) + hr.random_uniform([])

dataset = (
    hr.data.Dataset.range(97).shuffle(20).map(augment, num_parallel_calls=2).repeat(6).batch(4)
    .prefetch(3)
)
iterator = dataset.make_initializable_iterator()
element = iterator.get_next()
total = hr.Variable(0.0)
with hr.control_dependencies([total.assign_add(hr.reduce_sum(element)).op]):
    step = hr.identity(element)
position = hr.data.experimental.make_saveable_from_iterator(iterator)
hr.add_to_collection(hr.GraphKeys.SAVEABLE_OBJECTS, position)
saver = hr.train.Saver(max_to_keep=2)
with hr.Session() as session:
    session.run([hr.global_variables_initializer(), iterator.initializer])
    at = 0
    if (latest := hr.train.latest_checkpoint(folder)) is not None:
        saver.restore(session, latest)
        at = int(latest.rpartition("-")[2])
    while at < stop:
        values = session.run(step)
        at += 1
        print(json.dumps([at, values.tolist(), float(session.run(total))]), flush=True)
        if at % 3 == 0:
            saver.save(session, folder + "/run", at)
"""


def lines(text: str) -> dict[int, Any]:
    """What the program printed, by step; a last line that was cut short is left out."""
    whole = text[: text.rfind("\n") + 1].splitlines()
    return {at: (values, total) for at, values, total in map(json.loads, whole)}


def run(folder: Path, stop: int) -> dict[int, Any]:
    return lines(run_program(PROGRAM, folder, stop, timeout_s=100.0).stdout)


def test_a_run_goes_on_in_the_middle_of_an_epoch(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole", 60)
    first = run(tmp_path / "parts", 22)
    rest = run(tmp_path / "parts", 60)
    assert min(rest) == 22
    assert {**first, **rest} == whole


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_run_killed_at_random_places_goes_on_exactly(tmp_path: Path) -> None:
    stop = 145
    whole = run(tmp_path / "whole", stop)
    rng = random.Random(0)
    kills = 0
    while kills < 50:
        folder = tmp_path / f"killed-{kills}"
        found: dict[int, Any] = {}
        while stop not in found:
            printed = tmp_path / "printed"
            with printed.open("w") as stdout:
                process = subprocess.Popen(
                    [sys.executable, "-c", PROGRAM, str(folder), str(stop)], stdout=stdout
                )
            if kills < 50:
                # At any moment after the first step: the places differ from run to run.
                while "\n" not in printed.read_text() and process.poll() is None:
                    time.sleep(0.01)
                time.sleep(rng.uniform(0, 0.4))
                process.send_signal(signal.SIGKILL)
                kills += 1
            process.wait(timeout=100)
            text = printed.read_text()
            for at, values in lines(text).items():
                assert values == whole[at], f"step {at} after {kills} kills"
                found[at] = values


def test_positions_are_chosen_and_refused_as_variables_are(tmp_path: Path) -> None:
    with hr.Graph().as_default():
        iterator = hr.data.Dataset.range(5).make_initializable_iterator()
        element = iterator.get_next()
        saveable = hr.data.experimental.make_saveable_from_iterator(iterator)
        count = hr.Variable(np.int64(7))
        both = hr.train.Saver([count, saveable])
        named = hr.train.Saver({"place": saveable})
        alone = hr.train.Saver([count])
        with hr.Session() as session:
            session.run(count.initializer)
            with pytest.raises(UninitializedError, match="1 of 2 variables have no value"):
                both.save(session, tmp_path / "both")
            session.run(iterator.initializer)
            session.run(element)
            both.save(session, tmp_path / "both")
            named.save(session, tmp_path / "named")
            alone.save(session, tmp_path / "alone")
            session.run(element)
            with pytest.raises(CheckpointError, match=r"Iterator-position.* is not in it"):
                both.restore(session, tmp_path / "alone")
            assert session.run(element) == 2
            both.restore(session, tmp_path / "both")
            assert session.run(element) == 1
            named.restore(session, tmp_path / "named")
            assert session.run(element) == 1
