"""The UCI handwritten digits, 1797 images of 8x8 pixels, bundled so that they need no network.

The data are licensed under CC BY 4.0; ``LICENSE.digits.txt`` beside them says what was changed.

References:
    E. Alpaydin and C. Kaynak, "Optical Recognition of Handwritten Digits" (data set), UCI Machine
    Learning Repository, 1998, https://doi.org/10.24432/C50P49
"""

from __future__ import annotations

import importlib.resources

import numpy as np

from headrace.errors import DatasetError, told
from headrace.extend.arguments import real, whole
from headrace_train.datasets.dataset import Dataset, DataSplits, encode_labels

_CLASSES = 10
_MAX_PIXEL = 16


def load_digits(
    *,
    one_hot: bool = True,
    test_fraction: float = 0.2,
    validation_fraction: float = 0.0,
    seed: int = 0,
) -> DataSplits:
    """Load the UCI handwritten digits, split at random.

    "Optical Recognition of Handwritten Digits" by E. Alpaydin and C. Kaynak (1998), UCI Machine
    Learning Repository, https://doi.org/10.24432/C50P49, licensed under CC BY 4.0.

    Example:
        >>> digits = load_digits()
        >>> digits.train.images.shape, digits.test.labels.shape
        ((1438, 64), (359, 10))

    Args:
        one_hot: Labels as float32 [n, 10] rows with a single 1, otherwise as int64 [n].
        test_fraction: Share of the 1797 images that becomes ``test``.
        validation_fraction: Share that becomes ``validation``.
        seed: Decides the split and the order of the batches.

    Returns:
        ``train``, ``validation`` and ``test`` with ``images`` float32 [n, 64] from 0 to 1.

    Raises:
        DatasetError: if the fractions leave nothing to train with, or the seed is negative.
    """
    real(test_fraction, "test_fraction")
    real(validation_fraction, "validation_fraction")
    whole(seed, "seed")
    if not (test_fraction >= 0 and validation_fraction >= 0):
        raise DatasetError(
            "test_fraction and validation_fraction must be at least 0, "
            f"got {told(test_fraction)} and {told(validation_fraction)}"
        )
    if seed < 0:
        raise DatasetError(f"the seed of a data set must be at least 0, got {told(seed)}")
    archive = importlib.resources.files(__package__) / "digits.npz"
    with archive.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        pixels, numbers = arrays["images"], arrays["labels"]
    count = len(pixels)
    if not test_fraction + validation_fraction < 1:
        raise DatasetError(
            f"test_fraction {told(test_fraction)} and validation_fraction "
            f"{told(validation_fraction)} "
            f"leave none of the {count} images to train with"
        )
    test_count = round(count * test_fraction)
    validation_count = min(round(count * validation_fraction), count - test_count - 1)
    images = pixels.reshape(count, -1).astype(np.float32) / np.float32(_MAX_PIXEL)
    labels = encode_labels(numbers, _CLASSES, one_hot=one_hot)
    order = np.random.default_rng(seed).permutation(count)
    test, validation, train = np.split(order, [test_count, test_count + validation_count])
    return DataSplits(
        train=Dataset(images[train], labels[train], seed=seed),
        validation=Dataset(images[validation], labels[validation], seed=seed),
        test=Dataset(images[test], labels[test], seed=seed),
    )
