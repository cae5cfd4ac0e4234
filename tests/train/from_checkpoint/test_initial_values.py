"""Initial values from checkpoints: bundles, what is refused, and that nothing is half done."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    ArgumentTypeError,
    AttributeValueError,
    CheckpointMismatchError,
    CheckpointNotFoundError,
    GraphError,
    NotFoundError,
)
from headrace_train.bundles.writer import write_bundle

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("graph")]

TENSORS = {
    "old/w": np.arange(6, dtype=np.float32).reshape(2, 3),
    "old/b": np.ones(3, np.float32),
    "table": np.arange(40, dtype=np.float64).reshape(4, 10),
}


@pytest.fixture
def bundle(tmp_path: Path) -> str:
    write_bundle(tmp_path / "model", TENSORS)
    return str(tmp_path / "model")


def zeros(name: str, shape: list[int], dtype: hr.DType = hr.float32) -> hr.Variable:
    return hr.get_variable(name, shape, dtype, hr.zeros_initializer())


def test_a_bundle_gives_initial_values(bundle: str) -> None:
    with hr.variable_scope("new"):
        w, b = zeros("w", [2, 3]), zeros("b", [3])
    hr.train.init_from_checkpoint(bundle, {"old/": "new/"})
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        np.testing.assert_array_equal(session.run(w), TENSORS["old/w"])
        np.testing.assert_array_equal(session.run(b), TENSORS["old/b"])


def test_columns_in_parts_take_their_own(bundle: str) -> None:
    with hr.variable_scope("", partitioner=hr.fixed_size_partitioner(3, axis=1)):
        table = zeros("table", [4, 10], hr.float64)
    hr.train.init_from_checkpoint(bundle, {"table": table})
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        np.testing.assert_array_equal(session.run(table.as_tensor()), TENSORS["table"])
        assert [part.shape.as_list() for part in table] == [[4, 4], [4, 3], [4, 3]]


def test_values_are_read_when_the_initializer_runs(bundle: str, tmp_path: Path) -> None:
    w = zeros("w", [2, 3])
    hr.train.init_from_checkpoint(bundle, {"old/w": "w"})
    write_bundle(tmp_path / "model", {"old/w": np.full((2, 3), 7, np.float32)})
    with hr.Session() as session:
        session.run(w.initializer)
        assert session.run(w).tolist() == [[7] * 3] * 2
        (tmp_path / "model.index").unlink()
        with pytest.raises(NotFoundError, match="there is no checkpoint"):
            session.run(w.initializer)


def test_nothing_is_changed_if_anything_cannot_be(bundle: str) -> None:
    with hr.variable_scope("new"):
        w, b = zeros("b", [3]), zeros("w", [3, 2])
    before = [w.initializer, b.initializer]
    with pytest.raises(CheckpointMismatchError, match=r"'new/w' has shape \[3, 2\], but the"):
        hr.train.init_from_checkpoint(bundle, {"old/": "new/"})
    assert [w.initializer, b.initializer] == before


def test_what_a_map_cannot_hold(bundle: str) -> None:
    w, b = zeros("w", [2, 3]), zeros("b", [3])
    for asked, kind, message in (
        ([("old/w", w)], ArgumentTypeError, "assignment_map must be a dict"),
        ({"old/w": 3}, ArgumentTypeError, "names and scopes, got 3 for 'old/w'"),
        ({b"old/w": "w"}, AttributeValueError, "are names in the checkpoint, got b'old/w'"),
        ({"old/w": "v"}, AttributeValueError, r"'v'.* \(did you mean|pass a Variable itself"),
        ({"old/v": "w"}, CheckpointNotFoundError, "'old/v' is not in .*, did you mean 'old/w'"),
        ({"zzz": "w"}, CheckpointNotFoundError, "it has old/b, old/w, table"),
        ({"table": "w"}, CheckpointMismatchError, "'w' is float32, but .* is float64"),
        ({"old/w": [w, b]}, AttributeValueError, "the parts of one partitioned variable, got w, b"),
    ):
        with pytest.raises(kind, match=message):
            hr.train.init_from_checkpoint(bundle, asked)


def test_variables_of_another_graph_are_refused(bundle: str) -> None:
    w = zeros("w", [2, 3])
    with (
        hr.Graph().as_default(),
        pytest.raises(GraphError, match="'w' is a variable of another graph"),
    ):
        hr.train.init_from_checkpoint(bundle, {"old/w": w})


def test_names_of_objects_are_explained(tmp_path: Path) -> None:
    write_bundle(tmp_path / "model", {"_CHECKPOINTABLE_OBJECT_GRAPH": b"", "w/.A": 1.0})
    zeros("w", [])
    with pytest.raises(CheckpointNotFoundError, match=r"tf\.train\.Checkpoint wrote it"):
        hr.train.init_from_checkpoint(str(tmp_path / "model"), {"w": "w"})


def test_a_warm_start_changes_nothing_if_a_vocabulary_is_wrong(bundle: str, tmp_path: Path) -> None:
    (tmp_path / "words").write_text("a\nb\n")
    w, b = zeros("old/w", [2, 3]), zeros("old/b", [3])
    before = [w.initializer, b.initializer]
    info = hr.train.VocabInfo(str(tmp_path / "words"), 2, 1, str(tmp_path / "none"))
    with pytest.raises(NotFoundError, match=r"there is no vocabulary .*none"):
        hr.train.warm_start(bundle, ".*", {"old/b": info})
    assert [w.initializer, b.initializer] == before


def test_words_keep_what_is_theirs_on_any_rank(bundle: str, tmp_path: Path) -> None:
    (tmp_path / "old").write_text("a\nb\nc\n")
    (tmp_path / "new").write_text("c\nx\na\n")
    b = zeros("old/b", [4])
    info = hr.train.VocabInfo(
        str(tmp_path / "new"),
        3,
        1,
        str(tmp_path / "old"),
        backup_initializer=lambda shape: [5.0, 6.0],
    )
    write_bundle(bundle, {"old/b": np.array([1, 2, 3], np.float32)})
    hr.train.warm_start(bundle, None, {"old/b": info})
    with hr.Session() as session:
        session.run(b.initializer)
        assert session.run(b).tolist() == [3, 5, 1, 6]


def test_a_backup_initializer_is_a_function(bundle: str, tmp_path: Path) -> None:
    (tmp_path / "words").write_text("a\nb\nc\n")
    zeros("old/b", [4])
    words = str(tmp_path / "words")
    info = hr.train.VocabInfo(words, 3, 1, words, backup_initializer=3)
    with pytest.raises(ArgumentTypeError, match="backup_initializer must be a function of a shape"):
        hr.train.warm_start(bundle, None, {"old/b": info})
