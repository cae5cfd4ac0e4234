"""Checkpoints of objects: names as TensorFlow 1.15 writes them, matches, refusals, the manager."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    AttributeValueError,
    CheckpointDamagedError,
    CheckpointMismatchError,
    CheckpointNotFoundError,
    FailedPreconditionError,
    HeadraceError,
    UninitializedError,
)

pytestmark = [pytest.mark.needs("backend-cpu", "autodiff"), pytest.mark.usefixtures("graph")]

# What tf.train.list_variables of TensorFlow 1.15.5 says of the program in model().
VARIABLES = """
layer/bias
layer/bias/.OPTIMIZER_SLOT/opt/m
layer/bias/.OPTIMIZER_SLOT/opt/v
layer/kernel
layer/kernel/.OPTIMIZER_SLOT/opt/m
layer/kernel/.OPTIMIZER_SLOT/opt/v
opt/beta1_power
opt/beta2_power
save_counter
v
v/.OPTIMIZER_SLOT/opt/m
v/.OPTIMIZER_SLOT/opt/v
"""
NAMES = sorted(
    ["_CHECKPOINTABLE_OBJECT_GRAPH"]
    + [f"{path}/.ATTRIBUTES/VARIABLE_VALUE" for path in VARIABLES.split()]
)


# Steps that are to give the same bits wait for their kernels; others take them when they are there.
SAME_BITS = hr.Config(deterministic=True)


def model(scope: str = "a") -> tuple[dict[str, Any], hr.Operation]:
    """Return objects, and an operation that trains them."""
    with hr.variable_scope(scope):
        layer = hr.layers.Dense(2, kernel_initializer=hr.glorot_uniform_initializer(seed=1))
        y = layer(hr.ones([2, 3]))
        v = hr.get_variable("v", [], initializer=hr.ones_initializer())
        optimizer = hr.train.AdamOptimizer(0.1)
        train = optimizer.minimize(hr.reduce_sum(y * y) * v)
    return {"layer": layer, "v": v, "opt": optimizer}, train


@pytest.fixture
def saved(tmp_path: Path) -> tuple[str, list[Any]]:
    """A checkpoint after some steps, and what comes in the steps after it."""
    with hr.Graph().as_default(), hr.Session(config=SAME_BITS) as session:
        objects, train = model()
        checkpoint = hr.train.Checkpoint(**objects)
        session.run(hr.global_variables_initializer())
        for _ in range(3):
            session.run(train)
        path = checkpoint.save(tmp_path / "ck")
        after = []
        for _ in range(2):
            session.run(train)
            after.append(session.run([objects["v"], objects["layer"].kernel]))
        return path, after


def test_names_are_those_of_tensorflow(saved: Any, tmp_path: Path) -> None:
    path, _ = saved
    assert path == str(tmp_path / "ck-1")
    assert [name for name, _ in hr.train.list_variables(path)] == NAMES
    assert hr.train.latest_checkpoint(tmp_path) == path
    assert (tmp_path / "checkpoint").read_text() == (
        'model_checkpoint_path: "ck-1"\nall_model_checkpoint_paths: "ck-1"\n'
    )


def test_variables_of_other_names_take_what_was_saved(saved: Any) -> None:
    path, after = saved
    hr.Variable(0.0)
    objects, train = model("another")
    checkpoint = hr.train.Checkpoint(**objects)
    status = checkpoint.restore(path)
    assert status.assert_consumed() is status
    assert status.assert_existing_objects_matched() is status
    assert status.assert_nontrivial_match() is status
    assert status.expect_partial() is status
    with hr.Session(config=SAME_BITS) as session:
        status.run_restore_ops()
        assert session.run(checkpoint.save_counter) == 1
        for v, kernel in after:
            session.run(train)
            found = session.run([objects["v"], objects["layer"].kernel])
            np.testing.assert_array_equal(found[0], v)
            np.testing.assert_array_equal(found[1], kernel)
        assert checkpoint.save(path[:-2]).endswith("ck-2")


def test_objects_that_come_later_are_matched(saved: Any) -> None:
    path, after = saved
    checkpoint = hr.train.Checkpoint()
    status = checkpoint.restore(path)
    with pytest.raises(AssertionError, match=r"Unresolved object in checkpoint .*layer"):
        status.assert_consumed()
    objects, train = model()
    for name, value in objects.items():
        setattr(checkpoint, name, value)
    status.assert_consumed()
    with hr.Session(config=SAME_BITS) as session:
        status.initialize_or_restore(session)
        session.run(train)
        np.testing.assert_array_equal(session.run(objects["v"]), after[0][0])


def test_what_is_not_there_is_initialized(saved: Any) -> None:
    path, _ = saved
    objects, _ = model()
    extra = hr.Variable(7.0)
    checkpoint = hr.train.Checkpoint(layer=objects["layer"], extra=extra)
    status = checkpoint.restore(path)
    message = "Some Python objects were not bound to checkpointed values.* extra"
    for check in (status.assert_consumed, status.assert_existing_objects_matched):
        with pytest.raises(AssertionError, match=message) as caught:
            check()
        assert isinstance(caught.value, HeadraceError)
    status.assert_nontrivial_match()
    with hr.Session() as session:
        status.initialize_or_restore()
        assert session.run(extra) == 7.0
        # Without the checkpoint it would be zeros.
        assert np.abs(session.run(objects["layer"].bias)).min() > 0


def test_nothing_matches(saved: Any) -> None:
    path, _ = saved
    status = hr.train.Checkpoint(other=hr.Variable(0.0))._status(path)
    with pytest.raises(AssertionError, match="Nothing except the root object matched"):
        status.assert_nontrivial_match()
    status = hr.train.Checkpoint()._status(path)
    with pytest.raises(AssertionError, match="Nothing to load"):
        status.assert_nontrivial_match()


def test_no_checkpoint_initializes() -> None:
    v = hr.Variable(3.0)
    status = hr.train.Checkpoint(v=v).restore(None)
    for check in (
        status.assert_consumed,
        status.assert_existing_objects_matched,
        status.assert_nontrivial_match,
    ):
        with pytest.raises(AssertionError, match="No checkpoint specified"):
            check()
    with hr.Session() as session:
        with pytest.raises(AssertionError, match="no restore ops are available"):
            status.run_restore_ops()
        status.initialize_or_restore()
        assert session.run(v) == 3.0


def test_checkpoints_of_savers_are_matched_by_name(tmp_path: Path) -> None:
    v, w = hr.Variable(3.0, name="v"), hr.Variable(4.0, name="w")
    with hr.Session() as session:
        session.run([v.initializer, w.initializer])
        path = hr.train.Saver([v, w]).save(session, tmp_path / "plain")
        status = hr.train.Checkpoint(some=v).restore(path)
        with pytest.raises(AssertionError, match="no variables of the objects: w"):
            status.assert_consumed()
        status.assert_existing_objects_matched().assert_nontrivial_match()
        session.run(v.assign(0.0))
        status.run_restore_ops()
        assert session.run(v) == 3.0
        both = hr.train.Checkpoint(a=v, b=w, c=hr.Variable(5.0, name="c")).restore(path)
        with pytest.raises(AssertionError, match="Object not restored: c are not in"):
            both.assert_existing_objects_matched()
        both.initialize_or_restore()
        assert session.run("c:0") == 5.0


def test_checkpoints_and_lists_hold_objects(tmp_path: Path) -> None:
    inner = hr.train.Checkpoint(v=hr.Variable(1.0))
    outer = hr.train.Checkpoint(inner=inner, same=inner)
    outer.several = [hr.Variable(2.0), {"x/y": hr.Variable(3.0)}]
    outer.number = 5
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        path = outer.write(tmp_path / "w", session=session)
        names = [name for name, _ in hr.train.list_variables(path)]
        assert names == [
            "_CHECKPOINTABLE_OBJECT_GRAPH",
            "inner/v/.ATTRIBUTES/VARIABLE_VALUE",
            "several/0/.ATTRIBUTES/VARIABLE_VALUE",
            "several/1/x.Sy/.ATTRIBUTES/VARIABLE_VALUE",
        ]
        session.run(inner.v.assign(9.0))
        # Without the counter, which write() does not make.
        outer._status(path).assert_consumed().run_restore_ops(session)
        assert session.run(inner.v) == 1.0
        assert not (tmp_path / "checkpoint").exists()


def test_cells_are_known_by_their_parts(tmp_path: Path) -> None:
    cells = [hr.nn.rnn_cell.GRUCell(2), hr.nn.rnn_cell.LSTMCell(2)]
    cell = hr.nn.rnn_cell.MultiRNNCell([cells[0], hr.nn.rnn_cell.DropoutWrapper(cells[1])])
    hr.nn.dynamic_rnn(cell, hr.ones([1, 2, 3]), dtype=hr.float32)
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        path = hr.train.Checkpoint(cell=cell).write(tmp_path / "w")
    # As TensorFlow names them.
    assert [name.split("/.A")[0] for name, _ in hr.train.list_variables(path)[1:]] == [
        "cell/cell-0/candidate.Sbias",
        "cell/cell-0/candidate.Skernel",
        "cell/cell-0/gates.Sbias",
        "cell/cell-0/gates.Skernel",
        "cell/cell-1/cell/bias",
        "cell/cell-1/cell/kernel",
    ]


def test_impossible_calls(tmp_path: Path, saved: Any) -> None:
    path, _ = saved
    for value in (3, [hr.Variable(0.0)], None):
        with pytest.raises(AttributeValueError, match="was expecting a trackable object for 'a'"):
            hr.train.Checkpoint(a=value)
    v = hr.Variable([1.0])
    checkpoint = hr.train.Checkpoint(v=v)
    with pytest.raises(FailedPreconditionError, match="there is no default session"):
        checkpoint.save(tmp_path / "x")
    with pytest.raises(CheckpointNotFoundError, match="nowhere"):
        checkpoint.restore(tmp_path / "nowhere")
    with hr.Session() as session:
        with pytest.raises(UninitializedError, match="have no value"):
            checkpoint.write(tmp_path / "x")
        with pytest.raises(CheckpointMismatchError, match="has shape"):
            checkpoint.restore(path).run_restore_ops(session)
    with pytest.raises(AttributeValueError, match="Expected a positive integer or `None`"):
        hr.train.CheckpointManager(checkpoint, tmp_path, 0)


def test_damaged_objects_are_refused(tmp_path: Path) -> None:
    v = hr.Variable(1.0)
    text = hr.Variable(b"\x0a\x04\x0a\x02\x08\x07")
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        path = hr.train.Saver({"_CHECKPOINTABLE_OBJECT_GRAPH": text}).save(session, tmp_path / "x")
        with pytest.raises(CheckpointDamagedError, match="refer to some that it lacks"):
            hr.train.Checkpoint(v=v).restore(path)
        session.run(text.assign(b"\xff\xff"))
        path = hr.train.Saver({"_CHECKPOINTABLE_OBJECT_GRAPH": text}).save(session, tmp_path / "y")
        with pytest.raises(CheckpointDamagedError, match="no serialized TrackableObjectGraph"):
            hr.train.Checkpoint(v=v).restore(path)


def test_the_manager_keeps_the_latest(tmp_path: Path) -> None:
    v = hr.Variable(1.0)
    checkpoint = hr.train.Checkpoint(v=v)
    folder = tmp_path / "m"
    manager = hr.train.CheckpointManager(checkpoint, folder, 2)
    assert (manager.latest_checkpoint, manager.checkpoints) == (None, [])
    with hr.Session() as session:
        session.run(v.initializer)
        for number in (1, 2, 3):
            assert manager.save() == str(folder / f"ckpt-{number}")
        assert manager.checkpoints == [str(folder / f"ckpt-{n}") for n in (2, 3)]
        assert manager.save(checkpoint_number=77) == str(folder / "ckpt-77")
        assert manager.save(hr.constant(78)) == str(folder / "ckpt-78")
        with pytest.raises(HeadraceError, match="must be a whole number"):
            manager.save("many")
        assert session.run(checkpoint.save_counter) == 6
    assert sorted(p.name for p in folder.glob("ckpt*")) == ["ckpt-77.h5", "ckpt-78.h5"]
    again = hr.train.CheckpointManager(checkpoint, folder, 5)
    assert again.latest_checkpoint == str(folder / "ckpt-78")
    assert again.checkpoints == [str(folder / f"ckpt-{n}") for n in (77, 78)]
    with pytest.raises(FailedPreconditionError, match="there is no default session"):
        again.save()


def test_the_manager_keeps_one_from_time_to_time(tmp_path: Path, monkeypatch: Any) -> None:
    v = hr.Variable(1.0)
    now = [time.time()]
    monkeypatch.setattr("headrace_train.object_checkpoints.manager.time.time", lambda: now[0])
    manager = hr.train.CheckpointManager(
        hr.train.Checkpoint(v=v), tmp_path, 1, keep_checkpoint_every_n_hours=2, checkpoint_name="c"
    )
    with hr.Session() as session:
        session.run(v.initializer)
        for _ in range(6):
            now[0] += 3600
            manager.save()
    # As in TensorFlow: at hours 2 and 4, and the latest.
    assert sorted(p.name for p in tmp_path.glob("c-*")) == ["c-2.h5", "c-4.h5", "c-6.h5"]


def test_a_checkpoint_of_tensorflow_is_restored() -> None:
    v = hr.Variable(0.0)
    layer = hr.layers.Dense(2)
    layer(hr.ones([2, 3]))
    path = Path(__file__).parent / "tf_checkpoint" / "ck-1"
    checkpoint = hr.train.Checkpoint(v=v, layer=layer)
    with hr.Session() as session:
        checkpoint.restore(path).assert_consumed().run_restore_ops()
        assert session.run(v) == 2.5
        np.testing.assert_array_equal(session.run(layer.kernel), np.arange(6.0).reshape(3, 2))
        assert session.run(checkpoint.save_counter) == 1
