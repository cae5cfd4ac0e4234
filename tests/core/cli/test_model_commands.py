"""``show`` and ``run``: what they print and write, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import headrace as hr
from headrace.cli.main import main

pytestmark = pytest.mark.needs("backend-cpu")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with two signatures."""
    folder = tmp_path_factory.mktemp("models") / "m"
    with hr.Graph().as_default(), hr.Session() as session:
        x = hr.placeholder(hr.float32, [None, 2], name="x")
        words = hr.placeholder(hr.string, [None], name="words")
        w = hr.Variable([[1.0], [2.0]], name="w")
        session.run(w.initializer)
        sparse = hr.sparse_placeholder(hr.float32, [2, 2], name="s")
        define = hr.saved_model.predict_signature_def
        builder = hr.saved_model.Builder(folder)
        builder.add_meta_graph_and_variables(
            session,
            ["serve"],
            {
                "serving_default": define(
                    {"x": x}, {"y": hr.matmul(x, w), "b": hr.cast(x, hr.bfloat16)}
                ),
                "texts": define({"words": words}, {"joined": hr.strings.join([words, words])}),
                "zeros": define({"words": words}, {"z": hr.strings.join([words, b"\0"])}),
                "sparse": define({"s": sparse}, {"s": sparse}),
            },
        )
        builder.add_meta_graph(["train", "gpu"])
        builder.save()
    return folder


def test_show_lists_signatures(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(model)]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"{model}: 1 variables of 2 elements\n\ntags: serve\n")
    assert "  signature serving_default  tensorflow/serving/predict\n" in text
    assert "      x  float32[?, 2]  x:0\n" in text
    assert "s/indices:0, s/values:0, s/shape:0" in text
    assert text.endswith("tags: train, gpu\n  no signatures\n")
    assert main(["show", "--json", str(model)]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["graphs"][0]["signatures"]["texts"]["inputs"] == {
        "words": {"tensor": "words:0", "dtype": "string", "shape": "[?]"}
    }
    assert data["graphs"][1] == {"tags": ["train", "gpu"], "signatures": {}}


def test_run_calls_a_signature(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    x = np.array([[1, 2], [3, 4]], np.float32)
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "one.npz", only=x)
    np.savez(tmp_path / "two.npz", x=x, other=x + 1, words=np.array(["ä", "bc"]))
    output = tmp_path / "answer.npz"
    for place, expected in (
        ("x.npy", [[5], [11]]),
        ("one.npz", [[5], [11]]),
        ("two.npz", [[5], [11]]),
        ("two.npz:other", [[8], [14]]),
    ):
        words = ["run", str(model), "--input", f"x={tmp_path / place}", "--output", str(output)]
        assert main(words) == 0
        with np.load(output) as found:
            np.testing.assert_array_equal(found["y"], expected)
            assert found["b"].dtype == np.float32
    assert capsys.readouterr().out.splitlines()[-1] == f"wrote b, y to {output}"
    words = ["run", str(model), "--signature", "texts", "--input", f"words={tmp_path}/two.npz"]
    assert main(words) == 0
    assert capsys.readouterr().out == "joined = [b'\\xc3\\xa4\\xc3\\xa4', b'bcbc']\n"
    assert main([*words, "--tags", "serve", "--output", str(output)]) == 0
    with np.load(output) as found:
        assert found["joined"].tolist() == ["ää".encode(), b"bcbc"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["show", "{m}/none"], "the folder does not exist"),
        (["run", "{m}/none"], "the folder does not exist"),
        (["run", "{m}", "--output", "x.txt"], "--output is a file named *.npz"),
        (
            ["run", "{m}", "--signature", "none"],
            "has no signature 'none'; it has 'serving_default'",
        ),
        (["run", "{m}", "--tags", "none"], "has no graph with the tags ['none']"),
        (["run", "{m}"], "takes 'x': 'x' missing"),
        (["run", "{m}", "--input", "x"], "expected NAME=FILE.npy or NAME=FILE.npz:KEY, got 'x'"),
        (["run", "{m}", "--input", "x={t}/none.npy"], "cannot read"),
        (["run", "{m}", "--input", "x={t}/text.npy"], "holds no array without pickles"),
        (["run", "{m}", "--input", "x={t}/object.npy"], "holds no array without pickles"),
        (["run", "{m}", "--input", "x={t}/two.npz"], "has no array 'x'; it has 'a', 'b'"),
        (["run", "{m}", "--input", "x={t}/two.npz:b"], "of two.npz:b cannot be read|'b' of"),
        (["run", "{m}", "--input", "x={t}/shape.npy"], "x:0"),
        (["run", "{m}", "--input", "x={t}/x.npy", "--output", "{t}/no/x.npz"], "cannot write"),
        (["run", "{m}", "--signature", "zeros", "--input", "words={t}/w.npy"], "end in zero bytes"),
    ],
    ids=range(15),
)
def test_mistakes_are_told(
    model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    message: str,
) -> None:
    (tmp_path / "text.npy").write_text("text")
    np.save(tmp_path / "object.npy", np.array([{}], object), allow_pickle=True)
    np.savez(tmp_path / "two.npz", a=np.ones(2), b=np.array([{}], object))
    np.save(tmp_path / "shape.npy", np.ones((1, 3), np.float32))
    np.save(tmp_path / "x.npy", np.ones((1, 2), np.float32))
    np.save(tmp_path / "w.npy", np.array([b"a"]))
    assert main([word.format(m=model, t=tmp_path) for word in words]) == 2
    told = capsys.readouterr().err
    assert any(part in told for part in message.split("|"))
    assert "Traceback" not in told
