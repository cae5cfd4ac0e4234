"""Graphs with their collections, written and read, and what is refused."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

import headrace as hr
from headrace import errors

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")


def build() -> None:
    """A small model in the default graph."""
    with hr.variable_scope("model"):
        w = hr.get_variable("w", [2], initializer=hr.ones_initializer())
        x = hr.placeholder(hr.float32, [2], name="x")
        loss = hr.reduce_sum(w * x, name="loss")
    step = hr.train.get_or_create_global_step()
    train = hr.train.GradientDescentOptimizer(0.5).minimize(loss, step, name="train")
    for key, value in {
        "ends": loss,
        "steps": train,
        "texts": "a",
        "numbers": 3,
        "flags": True,
    }.items():
        hr.add_to_collection(key, value)
    hr.add_to_collection("odd", object())


@pytest.mark.parametrize("as_text", [False, True])
def test_a_program_goes_on_from_a_file(tmp_path: Path, as_text: bool) -> None:
    file = tmp_path / "new" / "graph.meta"
    with hr.Graph().as_default():
        build()
        message = hr.train.export_meta_graph(str(file), as_text=as_text)
    assert [p.name for p in file.parent.iterdir()] == ["graph.meta"]
    assert "odd" not in message.collection_def
    with hr.Graph().as_default() as graph, hr.Session() as session:
        saver = hr.train.import_meta_graph(str(file))
        assert isinstance(saver, hr.train.Saver)
        assert [v.name for v in hr.global_variables()] == ["model/w:0", "global_step:0"]
        (w,) = hr.trainable_variables()
        assert w is hr.global_variables()[0]
        (loss,) = hr.get_collection("ends")
        (train,) = hr.get_collection("steps")
        assert (loss.name, train.name) == ("model/loss:0", "train")
        assert hr.get_collection("texts") == [b"a"]
        assert hr.get_collection("numbers") == [3]
        assert [repr(flag) for flag in hr.get_collection("flags")] == ["1"]
        session.run(hr.global_variables_initializer())
        session.run(train, {"model/x:0": [1, 2]})
        np.testing.assert_array_equal(session.run(w), [0.5, 0])
        assert hr.train.global_step(session, hr.train.get_global_step()) == 1
        # Gradients can be built on, and again written.
        (gradient,) = hr.gradients(loss, [w])
        assert session.run(gradient, {"model/x:0": [1, 2]}).tolist() == [1, 2]
        assert hr.train.export_meta_graph(graph=graph).collection_def["texts"].bytes_list.value


def test_graphs_are_imported_under_scopes() -> None:
    with hr.Graph().as_default():
        build()
        message = hr.train.export_meta_graph(clear_devices=True)
    with hr.Graph().as_default():
        for _ in range(2):
            hr.train.import_meta_graph(message, import_scope="copy")
        assert [v.op_name for v in hr.trainable_variables()] == ["copy/model/w", "copy_1/model/w"]
        assert hr.get_collection("ends")[1].name == "copy_1/model/loss:0"


def test_a_scope_is_exported_without_its_name() -> None:
    with hr.Graph().as_default():
        build()
        message = hr.train.export_meta_graph(export_scope="model", collection_list=["variables"])
        taken = hr.train.export_meta_graph(export_scope="gradients")
        unbound = set(taken.collection_def["unbound_inputs"].bytes_list.value)
        assert unbound
        assert all(name.startswith(b"$unbound_inputs_model/") for name in unbound)
        with pytest.raises(ValueError, match="nothing in the scope 'none'"):
            hr.train.export_meta_graph(export_scope="none")
    assert {"w", "x", "loss", "w/Assign"} <= {node.name for node in message.graph_def.node}
    with hr.Graph().as_default():
        hr.train.import_meta_graph(message)
        assert [v.name for v in hr.global_variables()] == ["w:0"]


def test_what_a_scope_takes_from_outside_is_bound_when_it_is_imported() -> None:
    with hr.Graph().as_default():
        x = hr.constant([1.0, 2.0], name="outer/x")
        with hr.name_scope("inner"):
            y = hr.multiply(x, 3.0, name="y")
            hr.add(y, x, name="z")
        message = hr.train.export_meta_graph(export_scope="inner")
    assert message.collection_def["unbound_inputs"].bytes_list.value == [
        b"$unbound_inputs_outer/x",
        b"$unbound_inputs_outer/x",
    ]
    with hr.Graph().as_default(), hr.Session() as session:
        missing = r"takes what is not in it: '\$unbound_inputs_outer/x'"
        with pytest.raises(ValueError, match=missing):
            hr.train.import_meta_graph(message, import_scope="a")
        bound = {"$unbound_inputs_outer/x": hr.constant([10.0, 20.0])}
        hr.train.import_meta_graph(message, import_scope="a", input_map=bound)
        assert session.run("a/z:0").tolist() == [40.0, 80.0]
        assert "unbound_inputs" not in hr.get_default_graph().get_all_collection_keys()


def test_runners_of_queues_are_in_files() -> None:
    with hr.Graph().as_default():
        queue = hr.train.input_producer([1.0, 2.0, 3.0], num_epochs=1, shuffle=False)
        hr.identity(queue.dequeue(), name="value")
        message = hr.train.export_meta_graph()
    with hr.Graph().as_default(), hr.Session() as session:
        hr.train.import_meta_graph(message, import_scope="a")
        (runner,) = hr.get_collection(hr.GraphKeys.QUEUE_RUNNERS)
        assert runner.name == "a/" + queue.name
        session.run([hr.global_variables_initializer(), hr.local_variables_initializer()])
        coord = hr.train.Coordinator()
        threads = hr.train.start_queue_runners(session, coord)
        values = [float(session.run("a/value:0")) for _ in range(3)]
        with pytest.raises(errors.OutOfRangeError, match="closed"):
            session.run("a/value:0")
        coord.request_stop()
        coord.join(threads, stop_grace_period_secs=60)
    assert values == [1, 2, 3]
    assert not [t for t in threading.enumerate() if t.name.startswith("QueueRunnerThread-a/")]
    stored = message.collection_def["queue_runners"].bytes_list
    for wrong in (b"\xff", stored.value[0].replace(b"input_producer", b"output_produce")):
        stored.value[0] = wrong
        with hr.Graph().as_default() as graph, pytest.raises(errors.DataLossError, match="runner"):
            hr.train.import_meta_graph(message)
        assert len(graph) == 0


def test_graphs_without_variables_need_no_saver(tmp_path: Path) -> None:
    with hr.Graph().as_default() as graph:
        hr.constant(1.0, name="c")
        path = hr.train.write_graph(graph, tmp_path / "new", "graph.pbtxt")
        binary = hr.train.write_graph(graph.as_graph_def(), str(tmp_path), "graph.pb", False)
        message = hr.train.export_meta_graph(saver_def=None)
    assert path == str(tmp_path / "new" / "graph.pbtxt")
    assert 'name: "c"' in Path(path).read_text()
    assert hr.GraphDef.FromString(Path(binary).read_bytes()) == graph.as_graph_def()
    with hr.Graph().as_default():
        assert hr.train.import_meta_graph(message) is None


def test_what_is_wrong_is_refused(tmp_path: Path) -> None:
    bad = tmp_path / "bad.meta"
    bad.write_bytes(b"\xff\xff\x01garbage")
    with hr.Graph().as_default() as graph:
        for source, kind, message in (
            (str(tmp_path / "none.meta"), OSError, "there is no file"),
            (bad, ValueError, "holds no MetaGraphDef"),
            (3, TypeError, "must be a MetaGraphDef, got int"),
        ):
            with pytest.raises(kind, match=message):
                hr.train.import_meta_graph(source)
        with pytest.raises(TypeError, match="no argument 'foo'"):
            hr.train.import_meta_graph(bad, foo=3)
        with pytest.raises(TypeError, match="no argument 'foo'"):
            hr.train.export_meta_graph(foo=3)
        with pytest.raises(TypeError, match="graph must be a Graph, got int"):
            hr.train.export_meta_graph(graph=3)
        with pytest.raises(TypeError, match="graph_or_graph_def must be a GraphDef, got str"):
            hr.train.write_graph("text", tmp_path, "x")
        with pytest.raises(NotImplementedError, match="save_debug_info is not supported"):
            hr.train.export_meta_graph(save_debug_info=True)
        assert len(graph) == 0
        build()
        message = hr.train.export_meta_graph()
    for key, node in (("ends", "none:0"), ("steps", "none")):
        broken = hr.MetaGraphDef()
        broken.CopyFrom(message)
        broken.collection_def[key].node_list.value[0] = node
        with hr.Graph().as_default() as graph:
            with pytest.raises(errors.GraphError, match=f"the collection '{key}': .*'none'"):
                hr.train.import_meta_graph(broken)
            assert len(graph) == 0
    message.collection_def["variables"].bytes_list.value[0] = b"text"
    with hr.Graph().as_default(), pytest.raises(errors.DataLossError, match="which is no variable"):
        hr.train.import_meta_graph(message)


def test_a_saver_is_written_with_its_graph(tmp_path: Path) -> None:
    prefix = str(tmp_path / "model")
    with hr.Graph().as_default(), hr.Session() as session:
        build()
        saver = hr.train.Saver()
        session.run(hr.global_variables_initializer())
        session.run("train", {"model/x:0": [1, 2]})
        path = saver.save(session, prefix, global_step=1)
    file = f"{path}.meta"
    operations = {
        node.name for node in hr.train.export_meta_graph(graph=session.graph).graph_def.node
    }
    for scope in (None, "copy"):
        with hr.Graph().as_default() as graph, hr.Session() as session:
            again = hr.train.import_meta_graph(file, import_scope=scope)
            # The operations of the saver are there already.
            assert len(graph) == len(operations)
            again.restore(session, path)
            (w,) = hr.trainable_variables()
            np.testing.assert_array_equal(session.run(w), [0.5, 0])


def test_a_saver_chooses_the_variables_of_a_saved_model(tmp_path: Path) -> None:
    with hr.Graph().as_default(), hr.Session() as session:
        x = hr.placeholder(hr.float32, [], name="x")
        kept = hr.get_variable("kept", [], initializer=hr.constant_initializer(3.0))
        left = hr.get_variable("left", [], initializer=hr.constant_initializer(5.0))
        session.run(kept.initializer)
        builder = hr.saved_model.Builder(tmp_path / "m")
        signatures = {
            "kept": hr.saved_model.predict_signature_def({"x": x}, {"y": x * kept}),
            "left": hr.saved_model.predict_signature_def({"x": x}, {"y": x * left}),
        }
        builder.add_meta_graph_and_variables(
            session, ["t"], signatures, saver=hr.train.Saver({"renamed": kept})
        )
        builder.save()
    assert list(np.load(tmp_path / "m/variables/variables.npz")) == ["renamed"]
    with hr.saved_model.Model(tmp_path / "m") as model:
        assert model.signatures["kept"]({"x": 2.0})["y"] == 6
        with pytest.raises(errors.FailedPreconditionError, match="left"):
            model.signatures["left"]({"x": 2.0})
