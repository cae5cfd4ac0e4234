"""Saving and restoring sessions: round trips, refusals that name everything, crashes."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import CheckpointError, GraphError, UninitializedError
from headrace_train.checkpoint import CheckpointReader
from tests.children import run_program

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("graph")]


def initialized(**values: Any) -> tuple[hr.Session, dict[str, hr.Variable]]:
    """Variables with the given values, and a session in which they have them."""
    variables = {name: hr.Variable(value, name=name) for name, value in values.items()}
    session = hr.Session()
    session.run(hr.global_variables_initializer())
    return session, variables


def write(path: Path, **values: Any) -> str:
    """Save variables of these names and values from a graph of their own."""
    with hr.Graph().as_default():
        session, _ = initialized(**values)
        with session:
            return hr.train.Saver().save(session, path)


def tensors(path: str) -> dict[str, Any]:
    with CheckpointReader(path) as reader:
        return reader.read()


class TestRoundTrip:
    @pytest.mark.parametrize(
        "value",
        [
            np.float32([[1.5, -2], [np.inf, 4]]),
            np.float64(2.5),
            np.arange(6, dtype=np.int64).reshape(1, 2, 3),
            np.array([True, False]),
            np.array([1 + 2j, 0], np.complex64),
            np.zeros((0, 3), np.float32),
            np.float16([1, 2]),
            np.uint8([255]),
        ],
        ids=lambda v: f"{v.dtype}{list(v.shape)}",
    )
    def test_values(self, value: Any, tmp_path: Path) -> None:
        session, v = initialized(x=value)
        saver = hr.train.Saver()
        path = saver.save(session, tmp_path / "model")
        session.run(v["x"].assign(np.zeros_like(value)))
        saver.restore(session, path)
        found = session.run(v["x"])
        assert found.dtype == value.dtype
        np.testing.assert_array_equal(found, value)

    def test_bfloat16_and_strings(self, tmp_path: Path) -> None:
        x = hr.Variable(hr.constant([1.5, -2.0], hr.bfloat16), name="x")
        words = hr.Variable([b"two", b"words\0"], name="words")
        saver = hr.train.Saver()
        with hr.Session() as session:
            session.run(hr.global_variables_initializer())
            path = saver.save(session, tmp_path / "model")
        with hr.Session() as session:
            saver.restore(session, path)
            found, text = session.run([x, words])
            assert found.astype(np.float32).tolist() == [1.5, -2.0]
            assert text.tolist() == [b"two", b"words\0"]

    def test_into_a_new_session_and_graph(self, tmp_path: Path) -> None:
        path = write(tmp_path / "model", x=np.arange(3.0), y=7)
        x, y = hr.Variable(np.zeros(3), name="x"), hr.Variable(0, name="y")
        with hr.Session() as session:
            hr.train.Saver().restore(session, path)
            np.testing.assert_array_equal(session.run(x), [0, 1, 2])
            assert session.run(y) == 7

    def test_training_goes_on_as_if_it_had_not_stopped(self, tmp_path: Path) -> None:
        x = hr.Variable(np.linspace(-1, 1, 5), name="x")
        counter = hr.train.create_global_step()
        step = hr.train.AdamOptimizer(0.1).minimize(hr.reduce_sum(hr.square(x)), counter)
        saver = hr.train.Saver()
        with hr.Session() as session:
            session.run(hr.global_variables_initializer())
            for _ in range(3):
                session.run(step)
            path = saver.save(session, tmp_path / "model", global_step=counter)
            for _ in range(3):
                session.run(step)
            whole = session.run(x)
        assert path == str(tmp_path / "model-3")
        with hr.Session() as session:
            saver.restore(session, path)
            for _ in range(3):
                session.run(step)
            np.testing.assert_array_equal(session.run(x), whole)
            assert session.run(counter) == 6

    def test_under_other_names(self, tmp_path: Path) -> None:
        session, v = initialized(x=1.0, y=2.0)
        path = hr.train.Saver({"a": v["x"], "b": v["y"]}).save(session, tmp_path / "model")
        assert set(tensors(path)) == {"a", "b"}
        hr.train.Saver({"b": v["x"]}).restore(session, path)
        assert session.run([v["x"], v["y"]]) == [2.0, 2.0]

    def test_of_some_variables(self, tmp_path: Path) -> None:
        session, v = initialized(x=1.0, y=2.0)
        path = hr.train.Saver([v["y"]]).save(session, tmp_path / "model")
        assert set(tensors(path)) == {"y"}

    def test_variables_whose_shape_may_change(self, tmp_path: Path) -> None:
        x = hr.Variable(np.zeros(2), name="x", validate_shape=False)
        saver = hr.train.Saver()
        with hr.Session() as session:
            session.run(hr.assign(x, np.arange(5.0), validate_shape=False))
            path = saver.save(session, tmp_path / "model")
        with hr.Session() as session:
            saver.restore(session, path)
            np.testing.assert_array_equal(session.run(x), np.arange(5.0))

    def test_plain_h5py_reads_it(self, tmp_path: Path) -> None:
        import h5py

        with hr.name_scope("layer"):
            hr.Variable(np.float32([[1, 2], [3, 4]]), name="W")
        with hr.Session() as session:
            session.run(hr.global_variables_initializer())
            path = hr.train.Saver().save(session, tmp_path / "model", global_step=5)
        with h5py.File(f"{path}.h5") as file:
            np.testing.assert_array_equal(file["layer/W"][()], np.float32([[1, 2], [3, 4]]))
            assert file.attrs["step"] == 5

    def test_metadata(self, tmp_path: Path) -> None:
        session, _ = initialized(x=1.0)
        path = hr.train.Saver().save(session, tmp_path / "m", 3, metadata={"epoch": 2})
        with CheckpointReader(path) as reader:
            assert reader.step == 3
            assert reader.metadata == {"epoch": 2}


class TestGraph:
    def test_does_not_grow(self, tmp_path: Path) -> None:
        session, v = initialized(x=1.0, y=2.0)
        saver = hr.train.Saver()
        before = len(session.graph)
        for step in range(3):
            saver.restore(session, saver.save(session, tmp_path / "model", step))
        assert len(session.graph) == before
        assert v["x"].graph is session.graph

    def test_may_be_finalized(self, tmp_path: Path) -> None:
        session, v = initialized(x=1.0)
        saver = hr.train.Saver()
        session.graph.finalize()
        saver.restore(session, saver.save(session, tmp_path / "model"))
        assert session.run(v["x"]) == 1.0

    def test_restoring_leaves_the_placement_of_variables(self) -> None:
        with hr.device("/job:ps"):
            x = hr.Variable(1.0, name="x")
        hr.train.Saver()
        restore = hr.get_default_graph().get_operation_by_name("save/Assign")
        assert x.handle.op in restore.colocated_with


class TestPaths:
    @pytest.mark.parametrize(
        ("given", "step", "expected"),
        [
            ("model", None, "model"),
            ("model", 12, "model-12"),
            ("model.h5", None, "model.h5"),
            ("model.h5", 12, "model.h5-12"),
            ("model.ckpt", 12, "model.ckpt-12"),
            ("new/folder/model", 0, "new/folder/model-0"),
        ],
    )
    def test_of_the_file(self, given: str, step: int | None, expected: str, tmp_path: Path) -> None:
        session, _ = initialized(x=1.0)
        path = hr.train.Saver().save(session, str(tmp_path / given), step)
        assert path == str(tmp_path / expected)
        assert Path(path if path.endswith(".h5") else f"{path}.h5").is_file()

    def test_restore_takes_what_save_was_given(self, tmp_path: Path) -> None:
        session, v = initialized(x=1.0)
        saver = hr.train.Saver()
        saver.save(session, tmp_path / "model.ckpt")
        saver.save(session, tmp_path / "model.ckpt", 5)
        for path in ("model.ckpt", "model.ckpt.h5", "model.ckpt-5", "model.ckpt-5.h5"):
            session.run(v["x"].assign(0.0))
            saver.restore(session, tmp_path / path)
            assert session.run(v["x"]) == 1.0

    def test_restore_of_a_file_with_another_suffix(self, tmp_path: Path) -> None:
        path = write(tmp_path / "model", x=3.0)
        Path(f"{path}.h5").rename(tmp_path / "renamed.hdf5")
        session, v = initialized(x=1.0)
        hr.train.Saver().restore(session, tmp_path / "renamed.hdf5")
        assert session.run(v["x"]) == 3.0

    def test_none_where_there_was_no_checkpoint(self, tmp_path: Path) -> None:
        session, _ = initialized(x=1.0)
        saver = hr.train.Saver()
        latest: Any = hr.train.latest_checkpoint(tmp_path)
        with pytest.raises(CheckpointError, match="when it is None: latest_checkpoint returns"):
            saver.restore(session, latest)
        with pytest.raises(TypeError, match="save_path must be the path of a checkpoint, got None"):
            saver.save(session, latest)

    @pytest.mark.parametrize("path", ["", "folder/", "."])
    def test_that_name_no_file(self, path: str) -> None:
        session, _ = initialized(x=1.0)
        with pytest.raises(CheckpointError, match="no path of a checkpoint: expected one that"):
            hr.train.Saver().save(session, path)

    def test_a_step_that_is_no_whole_number(self, tmp_path: Path) -> None:
        session, _ = initialized(x=1.0)
        with pytest.raises(TypeError, match=r"global_step must be a whole number, got 1\.5"):
            hr.train.Saver().save(session, tmp_path / "model", 1.5)


class TestKeeping:
    def test_the_latest(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        session, _ = initialized(x=1.0)
        saver = hr.train.Saver(max_to_keep=2)
        with caplog.at_level(logging.INFO):
            for step in (10, 20, 30):
                saver.save(session, tmp_path / "model", step)
        kept = [str(tmp_path / f"model-{step}") for step in (20, 30)]
        assert saver.last_checkpoints == kept
        assert sorted(map(str, tmp_path.glob("*.h5"))) == [f"{path}.h5" for path in kept]
        assert hr.train.latest_checkpoint(tmp_path) == kept[-1]
        policy = f"checkpoints in {tmp_path}: the latest 2 are kept; older ones are deleted"
        assert caplog.text.count(policy) == 1

    @pytest.mark.parametrize("limit", [None, 0])
    def test_all(self, limit: int | None, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        session, _ = initialized(x=1.0)
        saver = hr.train.Saver(max_to_keep=limit)
        with caplog.at_level(logging.INFO):
            for step in range(8):
                saver.save(session, tmp_path / "model", step)
        assert len(list(tmp_path.glob("*.h5"))) == 8
        assert saver.last_checkpoints == []
        state = hr.train.get_checkpoint_state(tmp_path)
        assert list(state.all_model_checkpoint_paths) == [str(tmp_path / "model-7")]
        assert f"checkpoints in {tmp_path}: all are kept" in caplog.text

    def test_a_path_that_is_written_twice_counts_once(self, tmp_path: Path) -> None:
        session, _ = initialized(x=1.0)
        saver = hr.train.Saver()
        for name in ("a", "b", "a"):
            saver.save(session, tmp_path / name)
        assert saver.last_checkpoints == [str(tmp_path / "b"), str(tmp_path / "a")]

    def test_fewer_than_none(self) -> None:
        hr.Variable(1.0)
        with pytest.raises(CheckpointError, match="max_to_keep must be at least 1"):
            hr.train.Saver(max_to_keep=-1)


class TestRefusals:
    def test_all_that_is_missing_or_differs_is_named_and_nothing_is_changed(
        self, tmp_path: Path
    ) -> None:
        path = write(
            tmp_path / "model",
            same=np.ones(2),
            dtype=np.ones(2, np.float32),
            shape=np.ones(3),
            weights=np.ones(2),
        )
        zeros = np.zeros(2)
        session, v = initialized(same=zeros, dtype=zeros, shape=zeros, weigths=zeros, gone=zeros)
        with pytest.raises(CheckpointError, match="4 of 5 variables cannot be restored from") as e:
            hr.train.Saver().restore(session, path)
        lines = str(e.value).splitlines()
        assert lines[0].endswith(f"{path}.h5; nothing was changed:")
        assert lines[1:] == [
            "  'dtype' has dtype float64, in the checkpoint float32",
            "  'shape' has shape [2], in the checkpoint [3]",
            "  'gone' is not in it",
            "  'weigths' is not in it, did you mean 'weights'?",
            "  in it and not asked for: 'weights'",
        ]
        assert all(not value.any() for value in session.run(v).values())

    def test_many_are_counted(self, tmp_path: Path) -> None:
        path = write(tmp_path / "model", x=1.0)
        session, _ = initialized(**{f"variable{i}": 1.0 for i in range(40)})
        with pytest.raises(CheckpointError, match="40 of 40") as e:
            hr.train.Saver().restore(session, path)
        lines = str(e.value).splitlines()
        assert len(lines) == 12
        assert lines[-2:] == ["  ... and 31 more lines", "  in it and not asked for: 'x'"]

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "is not a Headrace checkpoint: it is empty"),
            (b"PK\x03\x04 something else", "is not a Headrace checkpoint: it starts with"),
        ],
    )
    def test_a_foreign_file(self, content: bytes, message: str, tmp_path: Path) -> None:
        (tmp_path / "model.h5").write_bytes(content)
        session, v = initialized(x=1.0)
        with pytest.raises(CheckpointError, match=message):
            hr.train.Saver().restore(session, tmp_path / "model")
        assert session.run(v["x"]) == 1.0

    def test_a_truncated_file(self, tmp_path: Path) -> None:
        path = write(tmp_path / "model", x=np.arange(100.0))
        file = Path(f"{path}.h5")
        file.write_bytes(file.read_bytes()[:-50])
        session, v = initialized(x=np.zeros(100))
        with pytest.raises(CheckpointError, match="is truncated: it has"):
            hr.train.Saver().restore(session, path)
        assert not session.run(v["x"]).any()

    def test_a_damaged_tensor_leaves_all_variables(self, tmp_path: Path) -> None:
        path = write(tmp_path / "model", x=np.arange(100.0), y=np.arange(100.0))
        file = Path(f"{path}.h5")
        content = bytearray(file.read_bytes())
        with CheckpointReader(path) as reader:
            offset = reader.tensors["y"].offset
        assert offset is not None
        content[offset] ^= 1
        file.write_bytes(content)
        session, v = initialized(x=np.zeros(100), y=np.zeros(100))
        with pytest.raises(CheckpointError, match="'y'"):
            hr.train.Saver().restore(session, path)
        assert not session.run(v["x"]).any()

    def test_no_file(self, tmp_path: Path) -> None:
        session, _ = initialized(x=1.0)
        with pytest.raises(CheckpointError, match=r"there is no checkpoint .*model\.h5"):
            hr.train.Saver().restore(session, tmp_path / "model")

    def test_variables_without_a_value_are_all_named(self, tmp_path: Path) -> None:
        x, _, _ = (hr.Variable(0.0, name=name) for name in "xyz")
        with hr.Session() as session:
            session.run(x.initializer)
            with pytest.raises(UninitializedError, match="2 of 3 variables have no value: y, z;"):
                hr.train.Saver().save(session, tmp_path / "model")
        assert list(tmp_path.iterdir()) == []

    def test_a_session_of_another_graph(self, tmp_path: Path) -> None:
        hr.Variable(1.0)
        saver = hr.train.Saver()
        with hr.Graph().as_default():
            session, _ = initialized(x=1.0)
        with pytest.raises(GraphError, match="the session runs another graph than that of the"):
            saver.save(session, tmp_path / "model")
        with pytest.raises(GraphError, match="the session runs another graph than that of the"):
            saver.restore(session, tmp_path / "model")

    def test_no_variables(self) -> None:
        with pytest.raises(CheckpointError, match="there are no variables to save: make the Saver"):
            hr.train.Saver()

    def test_what_is_no_variable(self) -> None:
        with pytest.raises(TypeError, match="a Saver saves variables, got <Tensor"):
            hr.train.Saver([hr.constant(1.0)])

    def test_a_variable_twice(self) -> None:
        x = hr.Variable(1.0, name="x")
        with pytest.raises(CheckpointError, match="variables are listed twice: x"):
            hr.train.Saver([x, x])

    def test_variables_of_two_graphs(self) -> None:
        x = hr.Variable(1.0)
        with hr.Graph().as_default():
            y = hr.Variable(1.0)
        with pytest.raises(GraphError, match="the variables of a Saver must belong to one graph"):
            hr.train.Saver({"x": x, "y": y})


def test_a_write_that_fails_leaves_the_old_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, v = initialized(x=1.0)
    saver = hr.train.Saver(max_to_keep=1)
    first = saver.save(session, tmp_path / "model", 1)
    session.run(v["x"].assign(2.0))

    def full(*_: Any, **__: Any) -> None:
        raise CheckpointError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("headrace_train.saver.kernels.write_checkpoint", full)
        with pytest.raises(CheckpointError, match="the disk is full"):
            saver.save(session, tmp_path / "model", 2)
    assert saver.last_checkpoints == [first]
    assert hr.train.latest_checkpoint(tmp_path) == first
    saver.restore(session, first)
    assert session.run(v["x"]) == 1.0


@pytest.mark.needs("dist-mpi", "mpi")
def test_variables_of_several_tasks(tmp_path: Path) -> None:
    # A process of its own, for MPI starts once; alone, it plays all tasks of the cluster.
    program = f"""
import headrace as hr, numpy as np
with hr.dist.Cluster(ps=1) as cluster:
    with hr.device("/job:ps"):
        a = hr.Variable(np.arange(3.0), name="a")
    with hr.device("/job:worker"):
        b = hr.Variable(7, name="b")
    saver, sharded = hr.train.Saver(), hr.train.Saver(sharded=True)
    clear = hr.group(a.assign(np.zeros(3)), b.assign(0))
    with hr.Session(cluster.target) as session:
        try:
            saver.save(session, {str(tmp_path / "model")!r})
        except hr.errors.UninitializedError as error:
            print(error)
        session.run(hr.global_variables_initializer())
        path = saver.save(session, {str(tmp_path / "model")!r})
        session.run(clear)
        saver.restore(session, path)
        print(session.run([a, b]))
        path = sharded.save(session, {str(tmp_path / "sharded")!r})
        session.run(clear)
        saver.restore(session, path)
        print(session.run([a, b]))
        session.run(clear)
        sharded.restore(session, {str(tmp_path / "model")!r})
        print(session.run([a, b]))
"""
    done = run_program(program)
    first, *restored = done.stdout.splitlines()
    assert first.startswith("cannot save: 2 of 2 variables have no value: a, b; run hr.global")
    assert restored == ["[array([0., 1., 2.]), np.int32(7)]"] * 3
    with CheckpointReader(tmp_path / "sharded") as reader:
        assert [file.name.split(".")[1] for file in reader.files[1:]] == [
            "part-00000-of-00002",
            "part-00001-of-00002",
        ]


def test_a_process_that_is_killed_while_it_saves_leaves_a_sound_checkpoint(tmp_path: Path) -> None:
    program = (
        "import headrace as hr, numpy as np\n"
        "x = hr.Variable(np.zeros(200_000), name='x')\n"
        "grow = x.assign_add(np.ones(200_000))\n"
        "saver = hr.train.Saver()\n"
        "with hr.Session() as session:\n"
        "    session.run(hr.global_variables_initializer())\n"
        "    while True:\n"
        "        session.run(grow)\n"
        f"        print(saver.save(session, {str(tmp_path / 'model')!r}), flush=True)\n"
    )
    job = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert job.stdout is not None
    with job.stdout as lines:
        for _ in range(3):
            assert next(lines)
        time.sleep(0.02)
        job.kill()
        job.wait()
    path = hr.train.latest_checkpoint(tmp_path)
    assert path == str(tmp_path / "model")
    session, v = initialized(x=np.zeros(200_000))
    hr.train.Saver().restore(session, path)
    found = session.run(v["x"])
    assert found[0] >= 3
    assert (found == found[0]).all()


@pytest.mark.parametrize("value", [b"a\0", b"\0", b"", b"\0a\0\0"], ids=repr)
def test_a_scalar_string_keeps_its_zero_bytes(value, tmp_path):
    with hr.Graph().as_default():
        text = hr.Variable(value)
        saver = hr.train.Saver()
        with hr.Session() as session:
            session.run(text.initializer)
            path = saver.save(session, tmp_path / "text")
            session.run(text.assign("other"))
            saver.restore(session, path)
            assert session.run(text) == value
