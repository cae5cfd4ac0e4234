"""MNIST, read from the four IDX files in which it is distributed.

References:
    Y. LeCun, L. Bottou, Y. Bengio and P. Haffner, "Gradient-based learning applied to document
    recognition", Proceedings of the IEEE, 1998, https://doi.org/10.1109/5.726791
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import DatasetDamagedError, DatasetError, DatasetNotFoundError, shorten, told
from headrace.extend.arguments import whole
from headrace_train.datasets.dataset import Dataset, DataSplits, encode_labels
from headrace_train.datasets.idx import read_idx
from headrace_train.settings import DATA

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CLASSES = 10
_PIXELS = (28, 28)
_STEMS = (
    ("train-images", "idx3-ubyte"),
    ("train-labels", "idx1-ubyte"),
    ("t10k-images", "idx3-ubyte"),
    ("t10k-labels", "idx1-ubyte"),
)


def load_mnist(
    path: str | Path | None = None,
    *,
    one_hot: bool = True,
    validation_size: int = 5000,
    seed: int = 0,
) -> DataSplits:
    """Load MNIST from its four IDX files, gzipped or not.

    Args:
        path: Folder with ``train-images-idx3-ubyte``, ``train-labels-idx1-ubyte``,
            ``t10k-images-idx3-ubyte`` and ``t10k-labels-idx1-ubyte``, each with or without
            ``.gz``. By default the folder ``mnist`` in the one named by the environment variable
            ``HEADRACE_DATA``.
        one_hot: Labels as float32 [n, 10] rows with a single 1, otherwise as int64 [n].
        validation_size: How many of the training examples, from the first on, become
            ``validation`` instead.
        seed: Decides the order of the batches.

    Returns:
        ``train``, ``validation`` and ``test`` with ``images`` float32 [n, 784] from 0 to 1.

    Raises:
        DatasetError: if files are missing or damaged (all are named), do not fit each other, or
            ``validation_size`` leaves nothing to train with.
    """
    train_pixels, train_numbers, test_pixels, test_numbers = _read_all(_find_files(_folder(path)))
    count = len(train_pixels)
    validation_size = whole(validation_size, "validation_size")
    if not 0 <= validation_size < count:
        raise DatasetError(
            f"validation_size must be from 0 to {count - 1}, for there are {count} training "
            f"examples; got {told(validation_size)}"
        )
    images = _scale(train_pixels)
    labels = encode_labels(train_numbers, _CLASSES, one_hot=one_hot)
    return DataSplits(
        train=Dataset(images[validation_size:], labels[validation_size:], seed=seed),
        validation=Dataset(images[:validation_size], labels[:validation_size], seed=seed),
        test=Dataset(
            _scale(test_pixels), encode_labels(test_numbers, _CLASSES, one_hot=one_hot), seed=seed
        ),
    )


def _folder(path: str | Path | None) -> Path:
    if path is not None:
        folder = Path(path)
        hint = "give the folder that holds the four IDX files"
    else:
        root = DATA.read()
        if not root:
            raise DatasetError(
                "load_mnist needs the folder that holds the four IDX files of MNIST: "
                "pass it, or set HEADRACE_DATA to a folder that has them in 'mnist'"
            )
        folder = Path(root) / "mnist"
        hint = f"it was looked for because HEADRACE_DATA is {root}"
    try:
        there = folder.is_dir()
    except OSError as error:
        raise DatasetError(f"{folder} cannot be looked at: {error.strerror}\n  {hint}") from error
    if not there:
        raise DatasetNotFoundError(f"there is no folder {folder}\n  {hint}")
    return folder


def _find_files(folder: Path) -> list[Path]:
    """Return the four files in the order of ``_STEMS``, or name all that are missing."""
    found, missing = [], []
    for stem, ending in _STEMS:
        # Some unpacking programs turn the dash before "idx" into a dot.
        names = [f"{stem}{mark}{ending}{gz}" for mark in "-." for gz in ("", ".gz")]
        file = next((folder / name for name in names if (folder / name).is_file()), None)
        if file is None:
            missing.append(names[0])
        else:
            found.append(file)
    if missing:
        raise DatasetNotFoundError(
            f"files of MNIST are missing in {folder}: {', '.join(missing)}\n"
            "  each may also be gzipped, with '.gz' after its name"
        )
    return found


def _read_all(files: list[Path]) -> list[NDArray[Any]]:
    """Read and check the four files, and report all faults in one error."""
    arrays: list[NDArray[Any]] = []
    faults: list[str] = []
    for file, (stem, _) in zip(files, _STEMS, strict=True):
        try:
            array = read_idx(file)
        except DatasetError as fault:
            faults.append(str(fault))
            continue
        expected = _PIXELS if "images" in stem else ()
        if array.dtype != np.uint8 or array.shape[1:] != expected or len(array) == 0:
            wanted = str(["n", *expected]).replace("'", "")
            faults.append(
                f"{file} holds {array.dtype} {list(array.shape)}, expected uint8 {wanted}"
            )
        elif not expected and array.max() >= _CLASSES:
            faults.append(f"{file} holds the label {array.max()}, expected 0 to {_CLASSES - 1}")
        arrays.append(array)
    if not faults:
        for images, labels in ((0, 1), (2, 3)):
            if len(arrays[images]) != len(arrays[labels]):
                faults.append(
                    f"{files[images]} holds {len(arrays[images])} images, "
                    f"and {files[labels]} holds {len(arrays[labels])} labels"
                )
    if faults:
        raise DatasetDamagedError(shorten(faults))
    return arrays


def _scale(pixels: NDArray[Any]) -> NDArray[Any]:
    images = pixels.reshape(len(pixels), -1).astype(np.float32)
    images /= np.float32(255)
    return images
