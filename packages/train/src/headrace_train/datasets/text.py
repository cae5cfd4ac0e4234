"""Texts as sequences of characters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import (
    ArgumentTypeError,
    DatasetDamagedError,
    DatasetError,
    DatasetNotFoundError,
    shown,
)
from headrace.extend.arguments import whole
from headrace_train.checkpoint.paths import is_regular
from headrace_train.settings import DATA

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Text:
    """A text as numbers of its characters.

    Attributes:
        characters: The different characters of the text, sorted; each one's place is its number.
        numbers: [length] int32, the text.
    """

    def __init__(self, text: str) -> None:
        """Number the characters of a text.

        Raises:
            DatasetError: if it is empty.
        """
        if not isinstance(text, str):
            raise ArgumentTypeError(f"a text must be a string, got {shown(text)}")
        if not text:
            raise DatasetError("an empty text has nothing to learn from")
        found, numbers = np.unique(np.array(list(text)), return_inverse=True)
        self.characters: list[str] = found.tolist()
        self.numbers: NDArray[np.int32] = numbers.astype(np.int32)

    def batches(self, size: int, length: int, *, seed: int = 0) -> Any:
        """Yield, without end, pieces of the text and the pieces one character further on.

        Args:
            size: How many pieces to a batch.
            length: How many characters to a piece.
            seed: Decides where the pieces are.

        Yields:
            Two arrays [size, length] int32: inputs, and what is to be predicted of each.

        Raises:
            ArgumentTypeError: if something is no whole number.
            AttributeValueError: if ``length`` is below 1, or another one below 0.
            DatasetError: if the text is shorter than a piece.
        """
        size, seed = whole(size, "size", 0), whole(seed, "seed", 0)
        length = whole(length, "length", 1)
        room = len(self.numbers) - length
        if room < 1:
            raise DatasetError(
                f"the text has {len(self.numbers)} characters, a piece needs {length + 1}"
            )
        rng = np.random.default_rng(seed)
        while True:
            starts = rng.integers(0, room, size)[:, None] + np.arange(length)
            yield self.numbers[starts], self.numbers[starts + 1]


def load_text(path: str | Path | None = None) -> Text:
    """Load a text file.

    Args:
        path: The file, UTF-8. By default ``tinyshakespeare/input.txt`` in the folder named by the
            environment variable ``HEADRACE_DATA``.

    Raises:
        DatasetError: if there is no such file, or it is empty or no UTF-8 text.
    """
    hint = "give a text file"
    if path is None:
        root = DATA.read()
        if not root:
            raise DatasetError(
                "load_text needs a text file: pass it, or set HEADRACE_DATA to a folder that has "
                "'tinyshakespeare/input.txt'"
            )
        path = Path(root) / "tinyshakespeare" / "input.txt"
        hint = f"it was looked for because HEADRACE_DATA is {root}"
    file = Path(path)
    if not is_regular(file):
        raise DatasetNotFoundError(f"there is no file {file}\n  {hint}")
    try:
        return Text(file.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise DatasetDamagedError(f"{file} is no UTF-8 text: {error.reason}") from None
