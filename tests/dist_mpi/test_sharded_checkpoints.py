"""A checkpoint that three ranks wrote, each its own variables, is restored on 1, 2 and 4."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from tests.dist_mpi.conftest import RunProgram

pytestmark = pytest.mark.needs("mpi", "backend-cpu", "train")

NAMES = ("a", "b", "c", "d", "e")

OPENING = """
import os, sys
import numpy as np
import headrace as hr

NAMES = ("a", "b", "c", "d", "e")

def model(cluster, scale):
    # The variables go round the tasks, however many there are.
    tasks = [f"/job:ps/task:{i}" for i in range(cluster.num_tasks("ps"))]
    tasks += [f"/job:worker/task:{i}" for i in range(cluster.num_tasks("worker"))]
    made = {}
    for number, name in enumerate(NAMES):
        with hr.device(tasks[number % len(tasks)]):
            value = np.arange(6.0).reshape(2, 3) + 10 * number
            made[name] = hr.Variable(scale * value, name=name)
    return made
"""

SAVE = """
with hr.dist.Cluster(ps=1) as cluster:
    if not cluster.is_chief:
        cluster.serve()
    else:
        model(cluster, 1.0)
        saver = hr.train.Saver(sharded=True)
        with hr.Session(cluster.target) as session:
            session.run(hr.global_variables_initializer())
            print(saver.save(session, PATH, 7))
"""

RESTORE = """
with hr.dist.Cluster(ps=1) as cluster:
    if not cluster.is_chief:
        cluster.serve()
    else:
        variables = model(cluster, 0.0)
        saver = hr.train.Saver(sharded=SHARDED)
        with hr.Session(cluster.target) as session:
            saver.restore(session, PATH + "-7")
            for number, name in enumerate(NAMES):
                expected = np.arange(6.0).reshape(2, 3) + 10 * number
                np.testing.assert_array_equal(session.run(variables[name]), expected)
            print("restored", saver.save(session, PATH, 8))
"""


def parts(folder: Path) -> list[str]:
    return sorted(file.name.split(".")[1] for file in folder.glob("*.part-*"))


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_three_ranks_write_and_others_restore(run_program: RunProgram, tmp_path: Path) -> None:
    import h5py

    from headrace_train.checkpoint import CheckpointReader

    folder = tmp_path / "run"
    path = f"PATH = {str(folder / 'model')!r}\n"
    done = run_program(3, path + SAVE, opening=OPENING)
    assert (done.code, done.err) == (0, ""), done.err
    assert done.out.strip() == str(folder / "model-7")
    assert parts(folder) == [f"part-0000{i}-of-00003" for i in range(3)]
    # No folder of the parts is left, and no temporary file.
    assert len(list(folder.iterdir())) == 3 + len(
        ["manifest", "graph", "checkpoint", "checkpoint.json"]
    )
    with CheckpointReader(folder / "model-7") as reader:
        reader.verify()
        assert sorted(reader.tensors) == list(NAMES)
        assert reader.step == 7
    with h5py.File(folder / "model-7.h5") as file:
        np.testing.assert_array_equal(file["c"][()], np.arange(6.0).reshape(2, 3) + 20)
    for size, sharded in ((1, True), (2, True), (4, True), (2, False)):
        source = f"{path}SHARDED = {sharded}\n" + RESTORE
        done = run_program(size, source, opening=OPENING)
        assert (done.code, done.err) == (0, ""), done.err
        assert done.out.strip() == f"restored {folder / 'model-8'}"
        with CheckpointReader(folder / "model-8") as reader:
            assert len(reader.files) == (1 + max(size, 2) if sharded else 1)
            assert sorted(reader.tensors) == list(NAMES)
    assert parts(folder) == [f"part-0000{i}-of-00003" for i in range(3)]


@pytest.mark.slow
def test_a_part_that_cannot_be_written_leaves_the_checkpoint_before(
    run_program: RunProgram, tmp_path: Path
) -> None:
    source = f"""
PATH = {str(tmp_path / "model")!r}
with hr.dist.Cluster(ps=1) as cluster:
    if not cluster.is_chief:
        cluster.serve()
    else:
        variables = model(cluster, 1.0)
        saver = hr.train.Saver(sharded=True)
        broken = hr.train.Saver([*variables.values(), hr.Variable(0.0, name="unset")], sharded=True)
        with hr.Session(cluster.target) as session:
            session.run([v.initializer for v in variables.values()])
            saver.save(session, PATH)
            before = sorted(os.listdir({str(tmp_path)!r}))
            try:
                broken.save(session, PATH)
            except hr.errors.UninitializedError as error:
                print(error)
            assert sorted(n for n in os.listdir({str(tmp_path)!r}) if "_temp_" not in n) == before
            saver.restore(session, PATH)
            print(hr.train.latest_checkpoint({str(tmp_path)!r}) == PATH)
"""
    done = run_program(2, source, opening=OPENING)
    assert (done.code, done.err) == (0, ""), done.err
    assert "1 of 6 variables have no value: unset" in done.out
    assert done.out.splitlines()[-1] == "True"
