"""Savers, folders and the command line take bundles of TensorFlow as they take our own files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import headrace as hr
from headrace.errors import CheckpointDamagedError, DataLossError
from headrace_train.checkpoint.cli import main
from tests.train.bundles.bundle_files import content_of, expected_tensors, laid_down

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("graph")]

# There are no quantized variables, and names of variables hold neither blanks nor zeros.
_DTYPES = (
    *("float16", "float32", "float64", "bfloat16", "int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64", "bool", "complex64", "complex128", "string"),
)


def variable(dtype: str, shape: tuple[int, ...], name: str) -> hr.Variable:
    empty = np.full(shape, b"" if dtype == "string" else 0, hr.as_dtype(dtype).numpy)
    return hr.Variable(hr.constant(empty, hr.as_dtype(dtype), list(shape)), name=name)


def test_a_saver_restores_a_bundle_bit_for_bit(tmp_path: Path) -> None:
    prefix = laid_down("everything", tmp_path)
    expected = {
        name: found
        for name, found in expected_tensors("everything").items()
        if name.partition("/")[0] in _DTYPES
    }
    assert len(expected) == 3 * len(_DTYPES)
    made = {name: variable(dtype, shape, name) for name, (dtype, shape, _) in expected.items()}
    saver = hr.train.Saver()
    with hr.Session() as session:
        saver.restore(session, prefix)
        values = {name: session.run(value) for name, value in made.items()}
        ours = saver.save(session, str(tmp_path / "ours"))
    for name, (dtype, shape, content) in expected.items():
        if dtype == "string" and not shape:
            assert [values[name]] == content
            continue
        assert np.shape(values[name]) == shape, name
        assert content_of(np.asarray(values[name])) == content, name
    # And what a saver writes of them is the same again.
    reader = hr.train.NewCheckpointReader(ours)
    for name, (dtype, _, content) in expected.items():
        found = reader.get_tensor(name)
        kind = object if dtype == "string" else None
        assert content_of(np.asarray(found, kind)) == content, name


@pytest.mark.parametrize("count", [1, 2, 5])
def test_partitioned_variables_are_divided_anew(count: int, tmp_path: Path) -> None:
    prefix = laid_down("parts", tmp_path)
    expected = expected_tensors("parts")
    with hr.variable_scope("rows", partitioner=hr.fixed_size_partitioner(count)):
        rows = hr.get_variable("table", [7, 3])
    with hr.variable_scope("columns", partitioner=hr.fixed_size_partitioner(count, axis=1)):
        columns = hr.get_variable("table", [2, 5], hr.float64)
    with hr.Session() as session:
        hr.train.Saver().restore(session, prefix)
        for whole, name in ((rows, "rows/table"), (columns, "columns/table")):
            found = session.run(hr.convert_to_tensor(whole))
            assert found.tobytes() == expected[name][2]


def test_a_damaged_bundle_is_not_restored_in_part(tmp_path: Path) -> None:
    prefix = laid_down("parts", tmp_path)
    data = Path(f"{prefix}.data-00001-of-00002")
    data.write_bytes(bytes(255 - byte for byte in data.read_bytes()))
    with hr.variable_scope("rows"):
        rows = hr.get_variable("table", [7, 3])
    words = variable("string", (2,), "words")
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        before = session.run([rows, words])
        with pytest.raises(DataLossError, match="tensor 'words': the checksum of the strings"):
            hr.train.Saver().restore(session, prefix)
        after = session.run([rows, words])
    assert [value.tobytes() for value in after] == [value.tobytes() for value in before]


def test_the_latest_of_a_folder_may_be_a_bundle(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    laid_down("everything", tmp_path, "model-1")
    laid_down("parts", tmp_path, "model-2")
    # As TensorFlow writes it.
    (tmp_path / "checkpoint").write_text(
        'model_checkpoint_path: "model-2"\n'
        'all_model_checkpoint_paths: "model-1"\nall_model_checkpoint_paths: "model-2"\n'
    )
    latest = hr.train.latest_checkpoint(str(tmp_path))
    assert latest == str(tmp_path / "model-2")
    assert hr.train.checkpoint_exists(latest)
    assert hr.train.load_variable(str(tmp_path), "global_step") == 7
    assert main(["ls", str(tmp_path)]) == 0
    assert "float32  [7,3]   84    rows/table" in capsys.readouterr().out
    # A damaged one is passed over.
    (tmp_path / "model-2.data-00000-of-00002").write_bytes(b"")
    assert hr.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model-1")
    with pytest.raises(CheckpointDamagedError, match="has 0 bytes, expected"):
        hr.train.load_variable(latest, "rows/table")


def test_divided_checkpoints_of_savers_are_read_alike(tmp_path: Path) -> None:
    with hr.variable_scope("rows", partitioner=hr.fixed_size_partitioner(2)):
        hr.get_variable("table", [3, 2], initializer=hr.ones_initializer())
    hr.Variable(hr.constant(["a"]), name="words")
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        prefix = hr.train.Saver(sharded=True).save(session, str(tmp_path / "model"))
    reader = hr.train.NewCheckpointReader(prefix)
    assert reader.get_variable_to_shape_map() == {"rows/table": [3, 2], "words": [1]}
    assert reader.debug_string() == b"rows/table (DT_FLOAT) [3,2]\nwords (DT_STRING) [1]\n"
    assert reader.get_tensor("rows/table").tolist() == [[1, 1]] * 3
    assert main(["convert", prefix, str(tmp_path / "bundle")]) == 0
    assert main(["diff", prefix, str(tmp_path / "bundle")]) == 0
