"""Examples with their labels, handed out in shuffled batches, epoch after epoch."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from headrace.errors import DatasetError, told
from headrace.extend.arguments import whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

_STATE_KEYS = frozenset({"num_examples", "seed", "epochs_completed", "position", "shuffled"})


@final
class Dataset:
    """A set of labelled images that is walked through in batches.

    The order of an epoch follows from the seed and the number of the epoch alone, so that a run
    which is stopped and resumed (``state``, ``set_state``) sees the batches that it would have
    seen without the stop, and two runs with one seed see the same.

    Attributes:
        images: [n, pixels] float32, from 0 to 1.
        labels: [n, classes] float32 one-hot, or [n] int64.
    """

    def __init__(self, images: NDArray[Any], labels: NDArray[Any], *, seed: int = 0) -> None:
        """Wrap arrays without copying them.

        Args:
            images: [n, pixels].
            labels: [n, ...].
            seed: Decides the order of the epochs, at least 0.

        Raises:
            ArgumentTypeError: if the seed is no whole number.
            DatasetError: if the arrays differ in length, or the seed is negative.
        """
        self._seed = whole(seed, "the seed of a data set")
        if len(images) != len(labels):
            raise DatasetError(f"there are {len(images)} images and {len(labels)} labels")
        if self._seed < 0:
            raise DatasetError(f"the seed of a data set must be at least 0, got {told(seed)}")
        self.images = images
        self.labels = labels
        self._epoch = 0
        self._position = 0
        # None until the first batch of the epoch decides whether the epoch is shuffled.
        self._shuffled: bool | None = None
        self._order: NDArray[np.int64] | None = None
        self._lock = threading.Lock()

    @property
    def num_examples(self) -> int:
        """The number of examples."""
        return len(self.images)

    @property
    def epochs_completed(self) -> int:
        """How many times all examples have been handed out."""
        return self._epoch

    def next_batch(
        self, batch_size: int, shuffle: bool = True
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the next images and labels.

        Every example is handed out once per epoch. A batch that reaches the end of an epoch is
        filled up from the next one. May be called from several threads.

        Args:
            batch_size: From 1 to ``num_examples``.
            shuffle: Whether an epoch that starts with this batch is shuffled; an epoch keeps the
                order that it started with.

        Returns:
            Images [batch_size, pixels] and labels [batch_size, ...], copies.

        Raises:
            ArgumentTypeError: if ``batch_size`` is no whole number.
            DatasetError: if there are no such batches.
        """
        batch_size = whole(batch_size, "batch_size")
        if not 1 <= batch_size <= self.num_examples:
            raise DatasetError(
                f"a batch of {told(batch_size)} cannot be taken from {self.num_examples} examples; "
                "expected a size from 1 to the number of examples"
            )
        with self._lock:
            rows = self._advance(batch_size, shuffle)
            missing = batch_size - len(rows)
            if missing:
                rows = np.concatenate([rows, self._advance(missing, shuffle)])
        return self.images[rows], self.labels[rows]

    def state(self) -> dict[str, int | bool | None]:
        """Return where the walk stands, as a small dict that fits into a checkpoint's metadata."""
        with self._lock:
            return {
                "num_examples": self.num_examples,
                "seed": self._seed,
                "epochs_completed": self._epoch,
                "position": self._position,
                "shuffled": self._shuffled,
            }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from where ``state()`` was taken.

        Args:
            state: What ``state()`` returned, of a data set with as many examples.

        Raises:
            DatasetError: if it is something else; nothing is changed then.
        """
        if set(state) != _STATE_KEYS:
            raise DatasetError(
                f"this is not the state of a data set: expected the keys {sorted(_STATE_KEYS)}, "
                f"got {sorted(map(str, state))}"
            )
        if state["num_examples"] != self.num_examples:
            raise DatasetError(
                f"the state was taken from a data set of {state['num_examples']} examples, "
                f"this one has {self.num_examples}"
            )
        counts = [state[key] for key in ("seed", "epochs_completed", "position")]
        possible = (
            all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in counts)
            and counts[2] < max(self.num_examples, 1)
            and (state["shuffled"] is None or isinstance(state["shuffled"], bool))
        )
        if not possible:
            raise DatasetError(f"the state of a data set has impossible values: {dict(state)}")
        with self._lock:
            self._seed, self._epoch, self._position = counts
            self._shuffled = state["shuffled"]
            self._order = None

    def _advance(self, count: int, shuffle: bool) -> NDArray[np.int64]:
        """Return up to ``count`` row numbers from what is left of the epoch."""
        if self._shuffled is None:
            self._shuffled = shuffle
        if self._order is None:
            self._order = np.arange(self.num_examples)
            if self._shuffled:
                np.random.default_rng([self._seed, self._epoch]).shuffle(self._order)
        rows = self._order[self._position : self._position + count]
        self._position += len(rows)
        if self._position == self.num_examples:
            self._epoch += 1
            self._position = 0
            self._shuffled = None
            self._order = None
        return rows

    def __repr__(self) -> str:
        return (
            f"Dataset(images={self.images.dtype}{list(self.images.shape)}, "
            f"labels={self.labels.dtype}{list(self.labels.shape)})"
        )


@final
@dataclass(frozen=True)
class DataSplits:
    """A data set in three parts that share no example.

    Attributes:
        train: What to learn from.
        validation: What to choose between models with; may be empty.
        test: What to report the accuracy on.
    """

    train: Dataset
    validation: Dataset
    test: Dataset


def encode_labels(labels: NDArray[Any], classes: int, *, one_hot: bool) -> NDArray[Any]:
    """Return class numbers as float32 one-hot rows [n, classes], or as int64 [n]."""
    numbers = labels.astype(np.int64)
    if not one_hot:
        return numbers
    rows = np.zeros((len(numbers), classes), np.float32)
    rows[np.arange(len(numbers)), numbers] = 1
    return rows
