"""Saved models: what is written, what comes back, and what is refused."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np
import pytest

import headrace as hr
from headrace import errors
from headrace.saved_model import signature_constants, tag_constants

pytestmark = pytest.mark.needs("backend-cpu")

SERVING = "serving_default"


def build(graph: hr.Graph, vocabulary: Path | None = None) -> dict[str, hr.Tensor]:
    """A model with a condition, variables of odd dtypes, and perhaps a table."""
    with graph.as_default():
        x = hr.placeholder(hr.float32, [None, 3], name="x")
        weights = hr.Variable(np.arange(6, dtype=np.float32).reshape(3, 2), name="dense/kernel")
        bias = hr.Variable(hr.zeros([2], hr.bfloat16), name="bias")
        texts = hr.Variable(np.array([b"a\0", b""], object), name="texts", trainable=False)
        y = hr.matmul(x, weights) + hr.cast(bias, hr.float32)
        z = hr.cond(hr.reduce_sum(y) > 0, lambda: y * 2, lambda: y - 1)
        hr.add_to_collection("ends", y)
        hr.add_to_collection("ends", 0.5)
        hr.add_to_collection("ends", "text")
        hr.add_to_collection("ends", b"\xff")
        hr.add_to_collection("ends", 7)
        hr.add_to_collection("odd", object())
        found = {"x": x, "y": y, "z": z, "texts": texts.value()}
        if vocabulary is not None:
            path = hr.constant(str(vocabulary))
            hr.add_to_collection(hr.GraphKeys.ASSET_FILEPATHS, path)
            initializer = hr.lookup.TextFileInitializer(
                path,
                hr.string,
                hr.lookup.TextFileIndex.WHOLE_LINE,
                hr.int64,
                hr.lookup.TextFileIndex.LINE_NUMBER,
            )
            table = hr.lookup.StaticHashTable(initializer, -1)
            words = hr.placeholder(hr.string, [None], name="words")
            found |= {"words": words, "ids": table.lookup(words)}
    return found


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    """A model saved with ``simple_save``."""
    folder = tmp_path / "model"
    graph = hr.Graph()
    ends = build(graph)
    with graph.as_default(), hr.Session() as session:
        session.run(hr.global_variables_initializer())
        graph.variables[1].load(np.array([1.0, 2.0]), session)
        outputs = {key: ends[key] for key in ("y", "z", "texts")}
        hr.saved_model.simple_save(session, folder, {"x": ends["x"]}, outputs)
    return folder


def rewritten(folder: Path, change) -> None:
    """Change the manifest of a model."""
    path = folder / "saved_model.json"
    data = json.loads(path.read_text())
    changed = change(data)
    path.write_text(json.dumps(changed if isinstance(changed, str) else data))


def test_a_model_answers_as_its_graph_did(exported: Path) -> None:
    with hr.saved_model.Model(exported) as model:
        answer = model.signatures[SERVING]({"x": [[1, 2, 3]]})
        again = model.signatures[SERVING].prepare()({"x": [[-1, -2, -3], [0, 0, 0]]})
    np.testing.assert_array_equal(answer["y"], [[17, 24]])
    np.testing.assert_array_equal(answer["z"], [[34, 48]])
    assert answer["texts"].tolist() == [b"a\0", b""]
    np.testing.assert_array_equal(again["z"], np.array([[-16, -21], [0, 1]]))


def test_what_a_signature_says_of_its_tensors(exported: Path) -> None:
    with hr.saved_model.Model(exported) as model:
        signature = model.signatures[SERVING]
        definition = model.meta_graph.signature_def[SERVING]
    assert list(signature.inputs) == ["x"]
    assert signature.inputs["x"].dtype == hr.float32
    assert signature.inputs["x"].shape.as_list() == [None, 3]
    assert list(signature.outputs) == ["texts", "y", "z"]
    assert signature.method_name == definition.method_name == "tensorflow/serving/predict"
    info = definition.inputs["x"]
    assert (info.name, hr.as_dtype(info.dtype)) == ("x:0", hr.float32)
    assert [dim.size for dim in info.tensor_shape.dim] == [-1, 3]
    assert info.shape.as_list() == [None, 3]
    assert hr.saved_model.is_valid_signature(definition)


def test_a_model_is_loaded_into_a_session_under_a_scope(exported: Path) -> None:
    with hr.Session(graph=hr.Graph()) as session:
        for scope in ("first", "second"):
            loaded = hr.saved_model.load(session, ["serve"], str(exported), import_scope=scope)
        assert loaded.meta_info_def.tags == ["serve"]
        info = loaded.signature_def[SERVING].outputs["y"]
        first = hr.saved_model.get_tensor_from_tensor_info(info, session.graph, "first")
        second = hr.saved_model.get_tensor_from_tensor_info(info, session.graph, "second")
        variables = session.graph.get_collection("variables")
        assert [v.op.name for v in variables][:3] == [
            *("first/dense/kernel", "first/bias", "first/texts")
        ]
        assert [v.op_name for v in session.graph.get_collection("trainable_variables")] == [
            *("first/dense/kernel", "first/bias", "second/dense/kernel", "second/bias")
        ]
        # Two copies do not share their variables.
        variables[0].load(np.zeros((3, 2)), session)
        feeds = {"first/x:0": [[1, 1, 1]], "second/x:0": [[1, 1, 1]]}
        a, b = session.run([first, second], feeds)
        np.testing.assert_array_equal(a, [[1, 2]])
        np.testing.assert_array_equal(b, [[7, 11]])
        ends = session.graph.get_collection("ends")
        assert ends == [first, 0.5, "text", b"\xff", 7, second, 0.5, "text", b"\xff", 7]


def test_names_that_are_taken_are_refused_and_nothing_is_added(exported: Path) -> None:
    graph = hr.Graph()
    with graph.as_default(), hr.Session() as session:
        hr.placeholder(hr.float32, name="x")
        with pytest.raises(errors.GraphError, match=r"these names already: 'x'.*under a scope"):
            hr.saved_model.load(session, ["serve"], exported)
        assert len(graph) == 1
        graph.finalize()
        with pytest.raises(errors.GraphError, match="finalized"):
            hr.saved_model.load(session, ["serve"], exported, "scope")


def test_values_are_plain_numpy_and_equal_models_make_equal_files(exported: Path) -> None:
    values = np.load(exported / "variables/variables.npz")
    np.testing.assert_array_equal(values["dense/kernel"], np.arange(6).reshape(3, 2))
    data = json.loads((exported / "saved_model.json").read_text())
    assert data["arrays"]["bias"] == {"dtype": "bfloat16", "shape": [2]}
    assert data["arrays"]["texts"] == {"dtype": "string", "shape": [2], "lengths": [2, 0]}


def test_several_graphs_share_variables(tmp_path: Path) -> None:
    builder = hr.saved_model.builder.SavedModelBuilder(tmp_path / "model")
    for rate, tags in ((0.5, [tag_constants.TRAINING]), (1.0, [tag_constants.SERVING, "gpu"])):
        with hr.Graph().as_default(), hr.Session() as session:
            v = hr.Variable(3.0, name="v")
            x = hr.placeholder(hr.float32, [], name="x")
            y = hr.multiply(v * rate, x, name="y")
            session.run(v.initializer)
            signatures = {"by": hr.saved_model.predict_signature_def({"x": x}, {"y": y})}
            if tags[0] == "train":
                with hr.device("/job:none"):
                    hr.no_op(name="elsewhere")
                with pytest.raises(errors.SavedModelUseError, match="no variables have been added"):
                    builder.add_meta_graph(tags)
                with pytest.raises(AssertionError, match="no graph to save"):
                    builder.save()
                builder.add_meta_graph_and_variables(session, tags, signatures, clear_devices=True)
                with pytest.raises(AssertionError, match="added already"):
                    builder.add_meta_graph_and_variables(session, tags, signatures)
            else:
                builder.add_meta_graph(tags, signatures)
                hr.Variable(1.0, name="late")
                with pytest.raises(errors.SavedModelUseError, match="not added: late"):
                    builder.add_meta_graph(["other"])
    assert builder.save() == str(tmp_path / "model/saved_model.json")
    for tags, expected in ((["train"], 3.0), (("gpu", "serve"), 6.0)):
        with hr.saved_model.Model(tmp_path / "model", tags) as model:
            assert model.signatures["by"]({"x": 2.0})["y"] == expected
    with pytest.raises(errors.SavedModelTagsError, match=r"no graph with the tags \['serve'\]"):
        hr.saved_model.Model(tmp_path / "model")
    with hr.Session(graph=hr.Graph()) as session, pytest.raises(RuntimeError, match="no graph"):
        hr.saved_model.loader.load(session, ["gpu"], tmp_path / "model")
    with pytest.raises(AssertionError, match="is not empty"):
        hr.saved_model.Builder(tmp_path / "model")


def test_tables_are_initialized_from_files_in_the_model(tmp_path: Path) -> None:
    vocabulary = tmp_path / "words.txt"
    vocabulary.write_text("one\ntwo\nthree\n")
    graph = hr.Graph()
    ends = build(graph, vocabulary)
    folder = tmp_path / "model"
    with graph.as_default(), hr.Session() as session:
        session.run([hr.global_variables_initializer(), hr.tables_initializer()])
        hr.saved_model.simple_save(
            session,
            folder,
            {"words": ends["words"]},
            {"ids": ends["ids"]},
            legacy_init_op=hr.tables_initializer(),
        )
        with pytest.raises(ValueError, match="run after loading already"):
            hr.saved_model.simple_save(
                session, tmp_path / "again", ends, ends, legacy_init_op=hr.no_op()
            )
    vocabulary.unlink()
    assert (folder / "assets/words.txt").read_text() == "one\ntwo\nthree\n"
    with hr.saved_model.Model(folder) as model:
        answer = model.signatures[SERVING]({"words": [b"two", b"four"]})
        assert list(model.meta_graph.assets.values()) == ["words.txt"]
    assert answer["ids"].tolist() == [1, -1]
    (folder / "assets/words.txt").write_text("one\ntwo\nthroe\n")
    with pytest.raises(errors.DataLossError, match=r"words.txt is damaged: its checksum"):
        hr.saved_model.Model(folder)


def test_assets_of_one_name_get_numbers(tmp_path: Path) -> None:
    paths = []
    for i, text in enumerate(["a", "b", "a"]):
        path = tmp_path / str(i) / "file.txt"
        path.parent.mkdir()
        path.write_text(text)
        paths.append(path)
    with hr.Graph().as_default(), hr.Session() as session:
        tensors = [hr.constant(str(path)) for path in paths]
        builder = hr.saved_model.Builder(tmp_path / "model")
        for odd in (hr.placeholder(hr.string), hr.constant(""), hr.constant(1), "text"):
            with pytest.raises(ValueError, match=r"no asset|is a tensor"):
                builder.add_meta_graph_and_variables(session, ["t"], None, [odd])
        with pytest.raises(errors.SavedModelError, match=r"cannot write .*No such file"):
            builder.add_meta_graph_and_variables(session, ["t"], None, [hr.constant("/none/such")])
        builder.add_meta_graph_and_variables(session, ["t"], assets_collection=tensors)
        builder.save()
    assert {p.name: p.read_text() for p in (tmp_path / "model/assets").iterdir()} == {
        "file.txt": "a",
        "file.txt_1": "b",
    }
    assert hr.saved_model.Model(tmp_path / "model").signatures == {}


def test_sparse_tensors_go_in_and_out(tmp_path: Path) -> None:
    with hr.Graph().as_default(), hr.Session() as session:
        sparse = hr.sparse_placeholder(hr.float32, [2, 3])
        doubled = hr.SparseTensor(sparse.indices, sparse.values * 2, sparse.dense_shape)
        hr.saved_model.simple_save(session, tmp_path / "m", {"s": sparse}, {"d": doubled})
    value = hr.SparseTensorValue(np.array([[0, 1]]), np.array([2.0]), np.array([2, 3]))
    with hr.saved_model.Model(tmp_path / "m") as model:
        found = model.signatures[SERVING]({"s": value})["d"]
        info = model.meta_graph.signature_def[SERVING].inputs["s"]
    assert found.values.tolist() == [4.0]
    assert info.coo_sparse is not None
    assert info.coo_sparse.values_tensor_name == sparse.values.name
    assert info.name == ""


def test_variables_of_one_initial_value_are_restored_apart(tmp_path: Path) -> None:
    with hr.Graph().as_default(), hr.Session() as session:
        start = hr.zeros([2])
        variables = [hr.Variable(start) for _ in range(3)]
        session.run(hr.global_variables_initializer())
        for i, variable in enumerate(variables):
            variable.load([i, i], session)
        total = hr.stack([v.value() for v in variables])
        x = hr.placeholder(hr.float32, [])
        hr.saved_model.simple_save(session, tmp_path / "m", {"x": x}, {"y": total * x})
    with hr.saved_model.Model(tmp_path / "m") as model:
        np.testing.assert_array_equal(
            model.signatures[SERVING]({"x": 1})["y"], [[0, 0], [1, 1], [2, 2]]
        )


# -- bad use


def test_a_signature_is_called_with_what_it_takes(exported: Path) -> None:
    model = hr.saved_model.Model(exported)
    call = model.signatures[SERVING]
    with pytest.raises(errors.FeedError, match="takes 'x': 'x' missing, 'X' unknown"):
        call({"X": 1})
    with pytest.raises(errors.FeedError, match="'q' unknown"):
        call({"x": [[1, 2, 3]], "q": 1})
    with pytest.raises(errors.InvalidArgumentError, match=r"x:0|shape"):
        call({"x": [[1, 2]]})
    model.close()
    with pytest.raises(errors.CancelledError, match="closed"):
        call({"x": [[1, 2, 3]]})


def test_a_half_written_model_is_none(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    graph = hr.Graph()
    build(graph)
    with graph.as_default(), hr.Session() as session:
        builder = hr.saved_model.Builder(folder)
        with pytest.raises(errors.FailedPreconditionError, match=r"dense/kernel|bias|texts"):
            builder.add_meta_graph_and_variables(session, ["serve"])
        session.run(hr.global_variables_initializer())
        builder.add_meta_graph_and_variables(session, ["serve"])
    assert not hr.saved_model.contains_saved_model(folder)
    with pytest.raises(OSError, match="not written to its end"):
        hr.saved_model.Model(folder)
    builder.save()
    assert hr.saved_model.maybe_saved_model_directory(str(folder))
    assert not list(folder.rglob("*.tmp"))
    hr.saved_model.Model(folder).close()


def test_python_functions_are_not_exported(tmp_path: Path) -> None:
    with hr.Graph().as_default(), hr.Session() as session:
        hr.py_func(lambda: np.float32(1), [], hr.float32, name="call")
        builder = hr.saved_model.Builder(tmp_path / "m")
        with pytest.raises(errors.SavedModelError, match="calls Python functions, in 'call'"):
            builder.add_meta_graph_and_variables(session, ["serve"])


def test_what_writes_files_is_not_served(tmp_path: Path) -> None:
    pytest.importorskip("headrace_io")
    with hr.Graph().as_default(), hr.Session() as session:
        x = hr.placeholder(hr.string, [], name="x")
        write = hr.write_file(str(tmp_path / "written"), x)
        with hr.control_dependencies([write]):
            y = hr.identity(x)
        hr.saved_model.simple_save(session, tmp_path / "m", {"x": x}, {"y": y})
        hr.saved_model.simple_save(session, tmp_path / "n", {"x": x}, {"y": x}, write)
    with (
        hr.saved_model.Model(tmp_path / "m") as model,
        pytest.raises(errors.SavedModelDamagedError, match="would write files, in WriteFile"),
    ):
        model.signatures[SERVING]({"x": b"text"})
    with pytest.raises(errors.SavedModelDamagedError, match=r"loading .* would write files"):
        hr.saved_model.Model(tmp_path / "n")
    assert not (tmp_path / "written").exists()


def test_a_session_of_another_graph_is_refused(tmp_path: Path) -> None:
    with hr.Session(graph=hr.Graph()) as session, hr.Graph().as_default():
        builder = hr.saved_model.Builder(tmp_path / "m")
        with pytest.raises(errors.GraphError, match="another graph than the default one"):
            builder.add_meta_graph_and_variables(session, ["serve"])


def test_signatures_name_tensors_of_the_graph(tmp_path: Path) -> None:
    info = hr.saved_model.TensorInfo("none:0", 1)
    with hr.Graph().as_default(), hr.Session() as session:
        builder = hr.saved_model.Builder(tmp_path / "m")
        for broken in (hr.saved_model.TensorInfo("x:0"), hr.saved_model.TensorInfo("", 1)):
            with pytest.raises(AssertionError, match="'x' of the signature 's' has no name or"):
                builder.add_meta_graph_and_variables(
                    session, ["serve"], {"s": hr.saved_model.build_signature_def({"x": broken})}
                )
        signature = hr.saved_model.build_signature_def({"x": info}, {}, "m")
        with pytest.raises(errors.GraphError, match=r"'x' of the signature 's': .*no operation"):
            builder.add_meta_graph_and_variables(session, ["serve"], {"s": signature})
        with pytest.raises(KeyError, match=r"^the name .* of a signature is reserved"):
            builder.add_meta_graph_and_variables(
                session, ["t"], {"__saved_model_init_op": hr.saved_model.SignatureDef()}
            )
        with pytest.raises(errors.GraphError, match=r"expected what .*build_signature_def returns"):
            builder.add_meta_graph_and_variables(session, ["t"], {"s": 3})
        with pytest.raises(TypeError, match="main_op must be an operation"):
            builder.add_meta_graph_and_variables(session, ["t"], main_op=3)


def test_signatures_of_the_three_forms() -> None:
    with hr.Graph().as_default():
        text = hr.placeholder(hr.string, [None])
        scores = hr.placeholder(hr.float32, [None, 2])
        number = hr.placeholder(hr.int32)
        classify = hr.saved_model.classification_signature_def(text, text, scores)
        regress = hr.saved_model.regression_signature_def(text, scores)
        for call in (
            lambda: hr.saved_model.classification_signature_def(text, None, None),
            lambda: hr.saved_model.classification_signature_def(None, text, None),
            lambda: hr.saved_model.classification_signature_def(text, scores, None),
            lambda: hr.saved_model.classification_signature_def(text, None, number),
            lambda: hr.saved_model.regression_signature_def(scores, scores),
            lambda: hr.saved_model.regression_signature_def(text, None),
            lambda: hr.saved_model.predict_signature_def({}, {"y": scores}),
            lambda: hr.saved_model.predict_signature_def({"x": scores}, None),
        ):
            with pytest.raises(ValueError, match=r"must be a tensor of|needs|a classification"):
                call()
        for valid in (
            classify,
            regress,
            hr.saved_model.classification_signature_def(text, text, None),
        ):
            assert hr.saved_model.is_valid_signature(valid)
        build = hr.saved_model.build_signature_def
        for odd in (
            None,
            build(),
            build(classify.inputs, classify.outputs, signature_constants.REGRESS_METHOD_NAME),
            build(classify.inputs, {}, signature_constants.CLASSIFY_METHOD_NAME),
            build(regress.outputs, regress.outputs, signature_constants.REGRESS_METHOD_NAME),
            build({}, {}, signature_constants.PREDICT_METHOD_NAME),
        ):
            assert not hr.saved_model.is_valid_signature(odd)
        for wrong in (3, "x"):
            with pytest.raises(errors.GraphError, match="expected a tensor"):
                hr.saved_model.build_tensor_info(wrong)


# -- a model from a stranger


def damaged(folder: Path, name: str) -> None:
    """Change a bit in the middle of a file."""
    path = folder / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


HOSTILE = {
    "no json": (lambda d: "text", "does not say 'format'"),
    "version": (lambda d: d.update(version=2), "of version 2, this Headrace reads"),
    "no graphs": (lambda d: d.update(graphs=[]), "lists no graphs"),
    "graphs": (lambda d: d.update(graphs={}), "graphs must be a list"),
    "key": (lambda d: d.pop("arrays"), "'arrays' is missing"),
    "outside": (
        lambda d: d["files"].update({"assets/../../x": {"bytes": 1, "crc32": 1}}),
        "which no saved model has",
    ),
    "parent": (lambda d: d["files"].update({"assets/..": {"bytes": 1, "crc32": 1}}), "no saved"),
    "absolute": (lambda d: d["graphs"][0].update(document="/etc/passwd"), "does not list the file"),
    "asset": (lambda d: d["graphs"][0]["assets"].update({"x:0": "../y"}), "does not list the file"),
    "size": (lambda d: d["files"]["graphs/0.json"].update(bytes=-1), "expected a size"),
    "huge": (lambda d: d["arrays"]["bias"].update(shape=[2**62]), "is not the bfloat16"),
    "many": (lambda d: d["arrays"]["bias"].update(shape=[2**40] * 60), "is not the bfloat16"),
    "rank": (lambda d: d["arrays"]["bias"].update(shape=[1] * 65), "no array has 65 dim"),
    "dtype": (lambda d: d["arrays"]["bias"].update(dtype="resource"), "no such arrays"),
    "other dtype": (lambda d: d["arrays"]["bias"].update(dtype="float32"), "is not the float32"),
    "same size": (lambda d: d["arrays"]["bias"].update(dtype="int16"), "is not the int16"),
    "no value": (lambda d: d["arrays"].pop("bias"), "the variable 'bias' has no value"),
    "lengths": (lambda d: d["arrays"]["texts"].update(lengths=[1, 2**60]), "is not the string"),
    "few lengths": (lambda d: d["arrays"]["texts"].update(lengths=[2]), "cannot have 1 lengths"),
    "feed": (
        lambda d: d["graphs"][0]["variables"].update(bias=["none:0", "bias/Assign"]),
        "has no operation 'none'",
    ),
    "target": (
        lambda d: d["graphs"][0]["variables"].update(bias=["x:0", "x:0"]),
        "where a Operation is meant",
    ),
    "other feed": (
        lambda d: d["graphs"][0]["variables"].update(bias=["x:0", "bias/Assign"]),
        "in the graph it is float32",
    ),
    "collection": (
        lambda d: d["graphs"][0]["collections"].update(a=[{"python": "x"}]),
        "no collection holds",
    ),
    "two main ops": (
        lambda d: d["graphs"][0]["collections"].update(saved_model_main_op=[{"int": 1}]),
        "must have one operation to run",
    ),
    "tensor": (
        lambda d: d["graphs"][0]["signatures"][SERVING]["inputs"]["x"].update(dtype="float33"),
        "is not a dtype",
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_manifest_of_a_stranger_is_checked(exported: Path, case: str) -> None:
    change, message = HOSTILE[case]
    rewritten(exported, change)
    with pytest.raises(errors.SavedModelDamagedError, match=message):
        hr.saved_model.Model(exported)


def test_a_signature_names_what_the_graph_has(exported: Path) -> None:
    rewritten(
        exported,
        lambda d: d["graphs"][0]["signatures"][SERVING]["inputs"]["x"].update(name="none:0"),
    )
    with pytest.raises(errors.SavedModelDamagedError, match=r"signature 'serving_default'.*'none'"):
        hr.saved_model.Model(exported)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("graphs/0.json", "its checksum is not"),
        ("variables/variables.npz", "is damaged|is not the"),
        (
            "saved_model.json",
            "is damaged|is no manifest|is missing|does not list|no saved model has",
        ),
    ],
)
def test_a_flipped_bit_is_noticed(exported: Path, name: str, message: str) -> None:
    damaged(exported, name)
    with pytest.raises(errors.SavedModelDamagedError, match=message):
        hr.saved_model.Model(exported)


@pytest.mark.parametrize("name", ["graphs/0.json", "variables/variables.npz"])
def test_files_that_are_cut_short_missing_or_elsewhere_are_noticed(
    exported: Path, tmp_path: Path, name: str
) -> None:
    path = exported / name
    content = path.read_bytes()
    path.write_bytes(content[:-9])
    with pytest.raises(errors.SavedModelDamagedError, match="it was written with"):
        hr.saved_model.Model(exported)
    path.unlink()
    with pytest.raises(errors.SavedModelDamagedError, match="is missing; export"):
        hr.saved_model.Model(exported)
    other = tmp_path / "other"
    other.write_bytes(content)
    path.symlink_to(other)
    with pytest.raises(errors.SavedModelDamagedError, match="outside of its folder"):
        hr.saved_model.Model(exported)


def test_compressed_values_are_refused(exported: Path) -> None:
    path = exported / "variables/variables.npz"
    np.savez_compressed(path, bias=np.zeros(2, np.uint16))
    content = path.read_bytes()

    def change(data):
        data["files"]["variables/variables.npz"] = {
            "bytes": len(content),
            "crc32": zlib.crc32(content),
        }

    rewritten(exported, change)
    rewritten(exported, lambda d: d["graphs"][0].update(variables={"bias": ["x:0", "x"]}))
    with pytest.raises(errors.SavedModelDamagedError, match="compressed, which is refused"):
        hr.saved_model.Model(exported)


def test_a_graph_that_calls_python_is_refused(exported: Path) -> None:
    path = exported / "graphs/0.json"
    data = json.loads(path.read_text())
    attrs = {"token": "x", "output_types": [{"dtype": "float32"}]}
    data["operations"].append({"name": "call", "type": "PyFunc", "attrs": attrs, "arity": [0]})
    content = json.dumps(data).encode()
    path.write_bytes(content)
    record = {"bytes": len(content), "crc32": zlib.crc32(content)}
    rewritten(exported, lambda d: d["files"].update({"graphs/0.json": record}))
    with pytest.raises(errors.SavedModelDamagedError, match="Python function of a py_func lives"):
        hr.saved_model.Model(exported)


def test_folders_without_a_model_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/saved_model.pb").write_bytes(b"\x08\x01")
    (tmp_path / "file").write_text("text")
    for name, message in (
        ("none", "the folder does not exist"),
        ("empty", "it has no file"),
        ("file", "no file"),
    ):
        with pytest.raises(errors.SavedModelNotFoundError, match=message):
            hr.saved_model.Model(tmp_path / name)
        assert not hr.saved_model.contains_saved_model(tmp_path / name)
    assert hr.saved_model.contains_saved_model(tmp_path / "theirs")
    with pytest.raises(errors.SavedModelError, match="cannot make the folder"):
        hr.saved_model.Builder(tmp_path / "file/model")
