"""The bundled digits, MNIST from files, and the walk through batches."""

from __future__ import annotations

import importlib.resources
import json
import threading
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from headrace.errors import ArgumentTypeError, DatasetError
from headrace_train.datasets import Dataset, load_digits, load_mnist, write_idx

if TYPE_CHECKING:
    from pathlib import Path

FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)


def make_dataset(count: int, seed: int = 0) -> Dataset:
    numbers = np.arange(count)
    return Dataset(numbers[:, None].astype(np.float32), numbers, seed=seed)


def write_mnist(folder: Path, *, suffix: str = "", train: int = 50, test: int = 10) -> Path:
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        count = train if name.startswith("train") else test
        shape = (count, 28, 28) if "images" in name else (count,)
        high = 256 if "images" in name else 10
        write_idx(folder / f"{name}{suffix}", rng.integers(0, high, shape, dtype=np.uint8))
    return folder


class TestDigits:
    def test_holds_all_images_once(self) -> None:
        digits = load_digits(test_fraction=0.25, validation_fraction=0.1)
        parts = (digits.train, digits.validation, digits.test)
        assert [part.num_examples for part in parts] == [1168, 180, 449]
        images = np.concatenate([part.images for part in parts])
        assert images.dtype == np.float32
        assert images.shape == (1797, 64)
        assert (images.min(), images.max()) == (0, 1)
        # The sum of all grey levels in the published file.
        assert int((images * 16).sum(dtype=np.float64)) == 561718

    def test_labels_are_one_hot_or_numbers_of_the_same_split(self) -> None:
        one_hot, plain = load_digits().train.labels, load_digits(one_hot=False).train.labels
        assert [str(one_hot.dtype), str(plain.dtype)] == ["float32", "int64"]
        assert (one_hot.sum(axis=1) == 1).all()
        np.testing.assert_array_equal(one_hot.argmax(axis=1), plain)

    def test_seed_decides_the_split(self) -> None:
        first, again, other = (load_digits(seed=seed).test.images for seed in (1, 1, 2))
        np.testing.assert_array_equal(first, again)
        assert not np.array_equal(first, other)

    def test_names_the_licence_of_the_data(self) -> None:
        folder = importlib.resources.files("headrace_train.datasets")
        text = (folder / "LICENSE.digits.txt").read_text()
        assert "CC BY 4.0" in text
        assert "CC BY 4.0" in (load_digits.__doc__ or "")

    @pytest.mark.parametrize(
        ("arguments", "match"),
        [
            ({"test_fraction": -0.1}, "must be at least 0, got -0.1 and 0.0"),
            ({"test_fraction": float("nan")}, "must be at least 0"),
            ({"test_fraction": 0.7, "validation_fraction": 0.3}, "leave none of the 1797 images"),
            ({"seed": -1}, "seed of a data set must be at least 0, got -1"),
        ],
    )
    def test_refuses_impossible_splits(self, arguments: dict[str, float], match: str) -> None:
        with pytest.raises(DatasetError, match=match):
            load_digits(**arguments)  # type: ignore[arg-type]


class TestMnist:
    @pytest.mark.parametrize("suffix", ["", ".gz"])
    def test_reads_the_four_files(self, tmp_path: Path, suffix: str) -> None:
        mnist = load_mnist(write_mnist(tmp_path, suffix=suffix), validation_size=5)
        assert mnist.train.images.shape == (45, 784)
        assert mnist.validation.images.shape == (5, 784)
        assert mnist.test.labels.shape == (10, 10)
        assert mnist.train.images.dtype == mnist.train.labels.dtype == np.float32
        assert 0 <= mnist.train.images.min() < mnist.train.images.max() <= 1
        images, labels = mnist.train.next_batch(7)
        assert (images.shape, labels.shape) == ((7, 784), (7, 10))

    def test_accepts_names_with_a_dot(self, tmp_path: Path) -> None:
        for file in list(write_mnist(tmp_path).iterdir()):
            file.rename(tmp_path / file.name.replace("-idx", ".idx"))
        assert load_mnist(tmp_path, validation_size=0, one_hot=False).train.labels.shape == (50,)

    def test_finds_the_folder_by_environment_variable(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HEADRACE_DATA", str(tmp_path))
        with pytest.raises(DatasetError, match=r"there is no folder .*\n.*HEADRACE_DATA is "):
            load_mnist()
        write_mnist(tmp_path / "mnist")
        assert load_mnist(validation_size=10).train.num_examples == 40
        monkeypatch.delenv("HEADRACE_DATA")
        with pytest.raises(DatasetError, match="pass it, or set HEADRACE_DATA"):
            load_mnist()

    def test_names_all_missing_files(self, tmp_path: Path) -> None:
        write_mnist(tmp_path)
        (tmp_path / FILES[0]).unlink()
        (tmp_path / FILES[3]).unlink()
        with pytest.raises(DatasetError, match=rf"missing in .*: {FILES[0]}, {FILES[3]}\n"):
            load_mnist(tmp_path)

    def test_names_all_damaged_files(self, tmp_path: Path) -> None:
        write_mnist(tmp_path)
        (tmp_path / FILES[0]).write_bytes(b"hello, world")
        write_idx(tmp_path / FILES[1], np.full(50, 10, np.uint8))
        write_idx(tmp_path / FILES[2], np.zeros((10, 14, 14), np.uint8))
        write_idx(tmp_path / FILES[3], np.zeros(10, np.int32))
        with pytest.raises(DatasetError, match="is not an IDX file") as caught:
            load_mnist(tmp_path)
        text = str(caught.value)
        assert "holds the label 10, expected 0 to 9" in text
        assert "holds uint8 [10, 14, 14], expected uint8 [n, 28, 28]" in text
        assert "holds int32 [10], expected uint8 [n]" in text
        assert len(text.splitlines()) <= 12

    def test_refuses_images_without_their_labels(self, tmp_path: Path) -> None:
        write_mnist(tmp_path)
        write_idx(tmp_path / FILES[3], np.zeros(9, np.uint8))
        with pytest.raises(DatasetError, match=r"holds 10 images, and .* holds 9 labels"):
            load_mnist(tmp_path)

    @pytest.mark.parametrize("size", [-1, 50])
    def test_refuses_an_impossible_validation_size(self, tmp_path: Path, size: int) -> None:
        with pytest.raises(DatasetError, match=f"must be from 0 to 49, .*got {size}"):
            load_mnist(write_mnist(tmp_path), validation_size=size)


class TestNextBatch:
    def test_every_epoch_holds_every_example_once_in_a_new_order(self) -> None:
        data = make_dataset(12)
        epochs = [np.concatenate([data.next_batch(4)[1] for _ in range(3)]) for _ in range(3)]
        assert all(sorted(epoch) == list(range(12)) for epoch in epochs)
        assert len({tuple(epoch) for epoch in epochs}) == 3
        assert data.epochs_completed == 3

    def test_images_and_labels_stay_together(self) -> None:
        images, labels = make_dataset(9).next_batch(9)
        np.testing.assert_array_equal(images[:, 0], labels)

    def test_fills_the_last_batch_from_the_next_epoch(self) -> None:
        data = make_dataset(5)
        labels = np.concatenate([data.next_batch(3)[1] for _ in range(5)])
        assert [sorted(labels[start : start + 5]) for start in (0, 5, 10)] == [list(range(5))] * 3
        assert data.epochs_completed == 3

    def test_keeps_the_order_without_shuffling(self) -> None:
        data = make_dataset(5)
        labels = [data.next_batch(2, shuffle=False)[1].tolist() for _ in range(5)]
        assert labels == [[0, 1], [2, 3], [4, 0], [1, 2], [3, 4]]

    def test_an_epoch_keeps_the_order_it_started_with(self) -> None:
        data = make_dataset(6)
        data.next_batch(2, shuffle=False)
        assert data.next_batch(4, shuffle=True)[1].tolist() == [2, 3, 4, 5]
        assert data.next_batch(6, shuffle=True)[1].tolist() != [0, 1, 2, 3, 4, 5]

    def test_seed_decides_the_order(self) -> None:
        first, again, other = (
            make_dataset(20, seed).next_batch(20)[1].tolist() for seed in (3, 3, 4)
        )
        assert first == again != other

    def test_returns_copies(self) -> None:
        data = make_dataset(4)
        data.next_batch(4, shuffle=False)[0][:] = -1
        assert data.images.min() == 0

    @pytest.mark.parametrize("batch_size", [0, -1, 11])
    def test_refuses_impossible_sizes(self, batch_size: int) -> None:
        with pytest.raises(DatasetError, match=f"a batch of {batch_size} cannot be taken from 10"):
            make_dataset(10).next_batch(batch_size)

    @pytest.mark.parametrize("number", [Decimal("NaN"), Decimal("1.5"), 1.5, None, "3", [1, 2]])
    def test_refuses_what_is_no_whole_number(self, number: Any) -> None:
        with pytest.raises(ArgumentTypeError, match="seed of a data set must be a whole number"):
            make_dataset(10, number)
        with pytest.raises(ArgumentTypeError, match="batch_size must be a whole number"):
            make_dataset(10).next_batch(number)

    def test_takes_whole_numbers_of_any_kind(self) -> None:
        expected = make_dataset(10, 3).next_batch(4)[1].tolist()
        for number in (np.int64(3), 3.0, Decimal(3), np.array(3)):
            assert make_dataset(10, number).next_batch(4)[1].tolist() == expected

    def test_threads_share_an_epoch(self) -> None:
        data = make_dataset(4000)
        taken: list[int] = []

        def take() -> None:
            for _ in range(100):
                taken.extend(data.next_batch(10)[1].tolist())

        threads = [threading.Thread(target=take) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(taken) == list(range(4000))


class TestState:
    @pytest.mark.parametrize("batches", [0, 1, 4, 5, 7])
    def test_resumed_walk_continues_the_interrupted_one(self, batches: int) -> None:
        data = make_dataset(10, seed=5)
        for _ in range(batches):
            data.next_batch(2)
        state = json.loads(json.dumps(data.state()))
        expected = [data.next_batch(3)[1].tolist() for _ in range(9)]
        resumed = make_dataset(10, seed=99)
        resumed.next_batch(7)
        resumed.set_state(state)
        assert [resumed.next_batch(3)[1].tolist() for _ in range(9)] == expected
        assert resumed.state() == data.state()

    def test_keeps_an_unshuffled_epoch_unshuffled(self) -> None:
        data = make_dataset(6)
        data.next_batch(2, shuffle=False)
        resumed = make_dataset(6)
        resumed.set_state(data.state())
        assert resumed.next_batch(4)[1].tolist() == [2, 3, 4, 5]

    @pytest.mark.parametrize(
        ("change", "match"),
        [
            ({"num_examples": 5}, "data set of 5 examples, this one has 10"),
            ({"position": 10}, "impossible values"),
            ({"position": "3"}, "impossible values"),
            ({"seed": -1}, "impossible values"),
            ({"shuffled": "yes"}, "impossible values"),
            ({"more": 1}, "not the state of a data set: expected the keys"),
        ],
    )
    def test_refuses_a_foreign_state(self, change: dict[str, object], match: str) -> None:
        data = make_dataset(10)
        before = data.state()
        with pytest.raises(DatasetError, match=match):
            data.set_state({**before, **change})
        assert data.state() == before


def test_refuses_arrays_that_do_not_fit() -> None:
    with pytest.raises(DatasetError, match="3 images and 2 labels"):
        Dataset(np.zeros((3, 4)), np.zeros(2))
    with pytest.raises(DatasetError, match="at least 0, got -1"):
        Dataset(np.zeros((2, 4)), np.zeros(2), seed=-1)
