"""Looking into checkpoints: those of savers by the same functions as TensorFlow's, and waiting."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest

import headrace as hr
from headrace.errors import CheckpointDamagedError, CheckpointNotFoundError, UnimplementedError
from headrace_train.bundles.writer import write_bundle
from headrace_train.checkpoint import write_checkpoint

TENSORS = {
    "layer/w": np.arange(6, dtype=np.float32).reshape(2, 3),
    "step": np.int64(3),
    "words": np.array([b"a", b""], object),
    "half": np.float16(1.5),
}


@pytest.fixture(params=["hdf5", "v2"])
def checkpoint(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "v2":
        write_bundle(tmp_path / "model", TENSORS)
    else:
        write_checkpoint(tmp_path / "model.h5", TENSORS)
    return str(tmp_path / "model")


def test_both_kinds_are_read_alike(checkpoint: str) -> None:
    reader = hr.train.NewCheckpointReader(checkpoint)
    assert reader.get_variable_to_shape_map() == {
        "half": [],
        "layer/w": [2, 3],
        "step": [],
        "words": [2],
    }
    assert reader.get_variable_to_dtype_map() == {
        "half": hr.float16,
        "layer/w": hr.float32,
        "step": hr.int64,
        "words": hr.string,
    }
    assert reader.debug_string() == (
        b"half (DT_HALF) []\nlayer/w (DT_FLOAT) [2,3]\nstep (DT_INT64) []\nwords (DT_STRING) [2]\n"
    )
    assert reader.has_tensor("step")
    assert not reader.has_tensor("steps")
    assert type(reader.get_tensor("step")) is np.int64
    np.testing.assert_array_equal(reader.get_tensor("layer/w"), TENSORS["layer/w"])
    assert hr.train.load_variable(checkpoint, "words:0").tolist() == [b"a", b""]
    assert hr.train.list_variables(checkpoint)[1] == ("layer/w", [2, 3])
    with pytest.raises(CheckpointNotFoundError, match=r"'layer/v'.*, did you mean 'layer/w'\?"):
        reader.get_tensor("layer/v")


def test_a_tensor_of_a_type_that_headrace_lacks(tmp_path: Path) -> None:
    from headrace_train.bundles.table_writing import write_table

    header, entry = bytes.fromhex("0801"), bytes.fromhex("081512002801")
    with (tmp_path / "model.index").open("wb") as stream:
        write_table(stream, [(b"", header), (b"v", entry)])
    reader = hr.train.NewCheckpointReader(str(tmp_path / "model"))
    assert reader.get_variable_to_shape_map() == {"v": []}
    assert reader.debug_string() == b"v (DT_VARIANT) []\n"
    with pytest.raises(UnimplementedError, match=r"'v' of .* is of TensorFlow's type variant"):
        reader.get_variable_to_dtype_map()


@pytest.mark.parametrize("value", [3, None, ["a"]])
def test_what_is_no_path(value: object) -> None:
    for function in (
        hr.train.NewCheckpointReader,
        hr.train.load_checkpoint,
        hr.train.list_variables,
    ):
        with pytest.raises(TypeError, match="must be a string, got"):
            function(value)


def test_a_damaged_checkpoint_of_a_saver(tmp_path: Path) -> None:
    file = tmp_path / "model.h5"
    write_checkpoint(file, TENSORS)
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(CheckpointDamagedError, match=r"model\.h5"):
        hr.train.NewCheckpointReader(str(tmp_path / "model"))


# -- waiting


def name_latest(folder: Path, prefix: str) -> None:
    """Say which checkpoint is the latest one, as TensorFlow says it."""
    (folder / "state.tmp").write_text(f'model_checkpoint_path: "{prefix}"\n')
    (folder / "state.tmp").rename(folder / "checkpoint")


def test_checkpoints_are_yielded_as_they_appear(tmp_path: Path) -> None:
    folder = tmp_path / "run"

    def write(number: int) -> None:
        folder.mkdir(exist_ok=True)
        write_checkpoint(folder / "new.tmp", {"n": np.int64(number)})
        (folder / "new.tmp").rename(folder / f"model-{number}.h5")
        name_latest(folder, f"model-{number}")

    found = []
    # The folder is not there when the wait begins.
    starter = threading.Timer(0.05, write, [1])
    starter.start()
    for path in hr.train.checkpoints_iterator(str(folder), timeout=30):
        found.append(Path(path).name.removesuffix(".h5"))
        if len(found) == 2:
            break
        write(2)
        # One that is not seen, as another follows before it is asked for.
        write(3)
    starter.join()
    assert found == ["model-1", "model-3"]


def test_the_interval_is_kept_and_the_timeout_asked(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "model.h5", TENSORS)
    name_latest(tmp_path, "model")
    asked = []

    def enough() -> bool:
        asked.append(time.monotonic())
        return len(asked) == 3

    began = time.monotonic()
    paths = list(hr.train.checkpoints_iterator(str(tmp_path), 0.1, 0.02, enough))
    assert len(paths) == 1
    assert len(asked) == 3
    assert asked[-1] - began >= 0.1 + 3 * 0.02
