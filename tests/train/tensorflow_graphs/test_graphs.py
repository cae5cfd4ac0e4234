"""Graphs that TensorFlow 1.15 wrote compute here what they compute there."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.extend.plugins import host
from headrace.extend.translations import TranslationRegistry, TranslationTable

pytestmark = pytest.mark.needs("backend-cpu")
ARCHIVE = Path(__file__).with_name("graphs.zip")


def names() -> list[str]:
    """Return the models of the archive."""
    with zipfile.ZipFile(ARCHIVE) as archive:
        return sorted({name.partition("/")[0] for name in archive.namelist()})


def unpacked(name: str, folder: Path) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return the prefix of a model's files, what is known of it, and its values."""
    with zipfile.ZipFile(ARCHIVE) as archive:
        for entry in archive.namelist():
            if entry.startswith(f"{name}/"):
                archive.extract(entry, folder)
    values = dict(np.load(folder / name / "values.npz"))
    about = json.loads((folder / name / "about.json").read_text())
    return str(folder / name / "model"), about, values


def feeds_of(values: dict[str, Any]) -> dict[str, Any]:
    """Return what was fed."""
    return {k.removeprefix("feed:"): _plain(v) for k, v in values.items() if k.startswith("feed:")}


def _plain(value: Any) -> Any:
    return value.astype(object) if value.dtype.kind == "S" else value


def assert_same(found: Any, expected: Any) -> None:
    """Compare a tensor with TensorFlow's."""
    array = np.asarray(found)
    assert array.shape == expected.shape
    if expected.dtype.kind == "S":
        assert array.tolist() == expected.tolist()
        return
    assert array.dtype == expected.dtype
    np.testing.assert_allclose(array, expected, rtol=2e-4, atol=2e-5)


# The others take longer, and hold little that these do not.
QUICK = ("decoder", "embeddings", "gradients", "mlp_adam", "mlp_sgd", "queue", "state", "text")


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in names()]
)
def test_a_graph_of_tensorflow_computes_the_same(name: str, tmp_path: Path) -> None:
    prefix, about, values = unpacked(name, tmp_path)
    graph = hr.Graph()
    with graph.as_default():
        saver = hr.train.import_meta_graph(f"{prefix}.meta")
        with hr.Session() as session:
            if saver is not None:
                saver.restore(session, prefix)
            session.run([hr.local_variables_initializer(), hr.tables_initializer()])
            feeds = feeds_of(values)
            steps = 3 if about["train"] else 1
            for step in range(steps):
                if step:
                    session.run(graph.get_operation_by_name(about["train"]), feeds)
                found = session.run(about["fetches"], feeds)
                assert found
                for i, value in enumerate(found):
                    assert_same(value, values[f"{step}:{i}"])


@pytest.mark.parametrize(
    "name",
    ["decoder", *(pytest.param(n, marks=pytest.mark.slow) for n in ("rnn", "conv_inference"))],
)
def test_under_a_scope_it_computes_the_same(name: str, tmp_path: Path) -> None:
    prefix, about, values = unpacked(name, tmp_path)
    with hr.Graph().as_default():
        hr.constant(1.0, name="x")
        saver = hr.train.import_meta_graph(f"{prefix}.meta", import_scope="from/there")
        with hr.Session() as session:
            assert saver is not None
            saver.restore(session, prefix)
            feeds = {f"from/there/{k}": v for k, v in feeds_of(values).items()}
            for i, name_of in enumerate(about["fetches"]):
                found = session.run(f"from/there/{name_of}", feeds)
                assert_same(found, values[f"0:{i}"])


@pytest.mark.slow
def test_an_imported_graph_is_differentiated_here(tmp_path: Path) -> None:
    prefix, about, values = unpacked("rnn", tmp_path)
    with hr.Graph().as_default() as graph:
        saver = hr.train.import_meta_graph(f"{prefix}.meta")
        assert saver is not None
        out = graph.get_tensor_by_name(about["fetches"][0])
        weights = hr.trainable_variables()[0]
        (gradient,) = hr.gradients(hr.reduce_sum(out), [weights.snapshot])
        with hr.Session() as session:
            saver.restore(session, prefix)
            found, value = session.run([gradient, weights], feeds_of(values))
    assert found.shape == value.shape
    assert np.abs(found).max() > 0


@pytest.mark.parametrize("name", ["rnn", "rnn_functions"])
def test_loops_have_as_many_iterations_at_a_time_as_the_message_says(
    name: str, tmp_path: Path
) -> None:
    prefix, _, _ = unpacked(name, tmp_path)
    written = hr.MetaGraphDef.FromString(Path(f"{prefix}.meta").read_bytes())
    functions = [node for f in written.graph_def.library.function for node in f.node_def]
    loops = [
        node
        for node in (*written.graph_def.node, *functions)
        if node.op in ("Enter", "While", "StatelessWhile")
    ]
    assert {node.attr["parallel_iterations"].i for node in loops} == {32}

    def read() -> set[int]:
        with hr.Graph().as_default() as graph:
            hr.train.import_meta_graph(written)
            return {
                op.attrs["parallel_iterations"] for op in graph.operations if op.type == "While"
            }

    assert read() == {32}
    for node in loops:
        node.attr["parallel_iterations"].i = 3
    assert read() == {3}
    for node in loops:
        del node.attr["parallel_iterations"]
    assert read() == {10}


def test_what_was_imported_is_written_and_read_again(tmp_path: Path) -> None:
    prefix, about, values = unpacked("decoder", tmp_path)
    with hr.Graph().as_default():
        hr.train.import_meta_graph(f"{prefix}.meta")
        message = hr.train.export_meta_graph()
    with hr.Graph().as_default():
        saver = hr.train.import_meta_graph(message)
        assert saver is not None
        with hr.Session() as session:
            saver.restore(session, prefix)
            found = session.run(about["fetches"][0], feeds_of(values))
    assert_same(found, values["0:0"])


def frozen(name: str, folder: Path, outputs: list[str]) -> tuple[Any, dict[str, Any]]:
    """Return a model with constants for its variables, and its values."""
    prefix, _, values = unpacked(name, folder)
    with hr.Graph().as_default() as graph:
        saver = hr.train.import_meta_graph(f"{prefix}.meta")
        with hr.Session() as session:
            assert saver is not None
            saver.restore(session, prefix)
            message = hr.graph_util.convert_variables_to_constants(
                session, graph.as_graph_def(), outputs
            )
    return message, values


def test_an_imported_graph_is_frozen(tmp_path: Path) -> None:
    message, values = frozen("mlp_sgd", tmp_path, ["Softmax"])
    with hr.Graph().as_default():
        (out,) = hr.import_graph_def(message, return_elements=["Softmax:0"], name="")
        with hr.Session() as session:
            assert_same(session.run(out, feeds_of({"feed:x:0": values["feed:x:0"]})), values["0:0"])


def make_node(name: str, op: str, *inputs: str, **attrs: Any) -> Any:
    """Return a node of TensorFlow's."""
    node = hr.NodeDef(name=name, op=op)
    node.input.extend(inputs)
    for key, value in attrs.items():
        node.attr[key].CopyFrom(value)
    return node


def graph_of(*nodes: Any) -> Any:
    """Return nodes as a graph."""
    message = hr.GraphDef()
    message.node.extend(nodes)
    return message


def float_attr() -> Any:
    """Return float32 as an attribute."""
    return hr.AttrValue(type=1)


X = make_node("x", "Placeholder", dtype=float_attr())
REFUSED = {
    "an op that nobody has": (
        graph_of(X, make_node("y", "AddV2", "x", "x"), make_node("z", "FrobnicateV7", "y")),
        hr.errors.NotFoundError,
        r"1 types that Headrace does not have: FrobnicateV7 \('z'\)",
    ),
    "an input that is not there": (
        graph_of(X, make_node("y", "AddV2", "x", "gone")),
        hr.errors.GraphError,
        "node 'y' has the unknown input 'gone'",
    ),
    "a cycle": (
        graph_of(make_node("a", "AddV2", "b", "b"), make_node("b", "AddV2", "a", "a")),
        hr.errors.GraphError,
        "depend on one another in a cycle",
    ),
    "an attribute that no op has": (
        graph_of(X, make_node("y", "AddV2", "x", "x", colour=hr.AttrValue(i=3))),
        ValueError,
        "AddV2 'y': its op has no attributes 'colour' in TensorFlow 1.15",
    ),
    "too few inputs": (
        graph_of(X, make_node("y", "BiasAdd", "x")),
        ValueError,
        "BiasAdd 'y': its 1 inputs or its attributes are not what the op takes",
    ),
    "an output that is not there": (
        graph_of(X, make_node("y", "AddV2", "x:3", "x")),
        ValueError,
        "AddV2 'y': 'x' has 1 outputs, there is no 'x:3'",
    ),
    "two of one name": (
        graph_of(X, X, make_node("y", "AddV2", "x", "x")),
        hr.errors.GraphError,
        "two nodes have the name 'x'",
    ),
    "a part of no loop": (
        graph_of(X, make_node("y", "AddV2", "x", "x"), make_node("z", "Exit", "y")),
        hr.errors.GraphError,
        "Exit 'z' is in no loop",
    ),
    "a function that is not there": (
        graph_of(
            X,
            make_node("y", "PartitionedCall", "x", f=hr.AttrValue(func=hr.NameAttrList(name="f"))),
        ),
        ValueError,
        "the graph has no function 'f'",
    ),
    "a placeholder of a list": (
        graph_of(make_node("x", "PlaceholderV2", dtype=hr.AttrValue(type=21))),
        ValueError,
        "a placeholder holds numbers or strings",
    ),
    "an array without its handle": (
        graph_of(X, make_node("y", "TensorArrayReadV3", "x", "x", "x")),
        ValueError,
        "must be the handle of a TensorArray",
    ),
    "an axis that is not known": (
        graph_of(
            X,
            make_node("i", "Placeholder", dtype=hr.AttrValue(type=3)),
            make_node("y", "ConcatV2", "x", "x", "i"),
        ),
        ValueError,
        "its input axis must be known while the graph is built",
    ),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_what_cannot_be_read_is_refused_and_nothing_is_added(case: str) -> None:
    message, kind, text = REFUSED[case]
    with hr.Graph().as_default() as graph, pytest.raises(kind, match=text):
        hr.import_graph_def(message)
    assert not graph.operations


def test_a_function_that_calls_itself_is_refused() -> None:
    message = graph_of(X, make_node("y", "f", "x"))
    function = message.library.function.add()
    function.signature.name = "f"
    function.signature.input_arg.add(name="a", type=1)
    function.signature.output_arg.add(name="r", type=1)
    function.node_def.append(make_node("again", "f", "a"))
    function.ret["r"] = "again:r:0"
    message.node.append(make_node("z", "AddV2", "y", "y"))
    with hr.Graph().as_default(), pytest.raises(ValueError, match="the function 'f' calls itself"):
        hr.import_graph_def(message)


def test_all_unknown_ops_are_counted() -> None:
    nodes = [make_node(f"n{i}", "Strange" if i % 2 else "Odd") for i in range(5)]
    message = graph_of(X, make_node("y", "AddV2", "x", "x"), *nodes)
    with hr.Graph().as_default(), pytest.raises(hr.errors.NotFoundError, match="2 types") as caught:
        hr.import_graph_def(message)
    assert "Odd ('n0' and 2 more)" in str(caught.value)
    assert "Strange ('n1' and 1 more)" in str(caught.value)


def test_the_page_lists_the_ops_that_have_a_row() -> None:
    page = Path(__file__).parents[3] / "docs" / "how-to" / "read-tensorflow-graphs.md"
    table = page.read_text(encoding="utf-8").partition("## Ops that are read")[2]
    assert set(re.findall(r"`(\w+)`", table)) == set(host().translations)


@pytest.mark.needs("backend-cpu", "io")
def test_images_are_encoded_in_a_quality_that_is_an_attribute_or_a_tensor() -> None:
    pixels = np.random.RandomState(0).randint(0, 256, (8, 9, 3)).astype(np.uint8)
    uint8, int32 = hr.AttrValue(type=4), hr.AttrValue(type=3)
    message = graph_of(
        make_node("x", "Placeholder", dtype=uint8),
        make_node("q", "Placeholder", dtype=int32),
        make_node("y", "EncodeJpegVariableQuality", "x", "q"),
        make_node("z", "EncodeJpeg", "x", quality=hr.AttrValue(i=30)),
    )
    with hr.Graph().as_default(), hr.Session() as session:
        y, z = hr.import_graph_def(message, return_elements=["y:0", "z:0"])
        feeds = {"import/x:0": pixels, "import/q:0": 30}
        of_tensor, of_attribute = session.run([y, z], feeds)
        assert of_tensor == of_attribute
        assert session.run(y, {**feeds, "import/q:0": 90}) != of_attribute


def test_a_plugin_adds_rows() -> None:
    rows = TranslationTable()

    @rows.add("FrobnicateV7")
    def _frobnicate(node: Any) -> Any:
        return node.tensor(0) * node.attr("factor", 1.0)

    registry = TranslationRegistry()
    registry.add(rows)
    row = registry.get("FrobnicateV7")
    assert row is not None
    with pytest.raises(hr.errors.PluginError, match="two translations of FrobnicateV7"):
        registry.add(rows)
    known = host().translations
    known.offers["FrobnicateV7"] = [row]
    try:
        message = graph_of(
            X,
            make_node("y", "FrobnicateV7", "x", factor=hr.AttrValue(f=2.5)),
            make_node("z", "AddV2", "y", "y"),
        )
        with hr.Graph().as_default(), hr.Session() as session:
            (z,) = hr.import_graph_def(message, return_elements=["z:0"])
            assert session.run(z, {"import/x:0": 2.0}) == 10.0
    finally:
        del known.offers["FrobnicateV7"]
