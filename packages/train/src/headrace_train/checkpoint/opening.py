"""Opening a checkpoint of whatever kind is behind a prefix."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from headrace.errors import CheckpointDamagedError, CheckpointNotFoundError, UnimplementedError
from headrace_train.bundles.paths import bundle_prefix, index_path, is_bundle
from headrace_train.bundles.tables import is_table
from headrace_train.checkpoint.files import open_regular
from headrace_train.checkpoint.paths import as_prefix, file_of, find_file, is_regular
from headrace_train.checkpoint.reader import CheckpointReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray


class StoredTensor(Protocol):
    """What a checkpoint says of a tensor without loading it."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def dtype(self) -> str:
        """Name of the element type, as in ``"float32"``."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""


class OpenCheckpoint(Protocol):
    """What can be asked of an open checkpoint, ours or one of TensorFlow's."""

    @property
    def path(self) -> Path:
        """The file or prefix."""

    @property
    def tensors(self) -> Mapping[str, StoredTensor]:
        """The tensors by name."""

    @property
    def step(self) -> int | None:
        """The global step, where the checkpoint says it."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What else the writer kept."""

    @property
    def producers(self) -> Mapping[str, str]:
        """Versions of what wrote it."""

    @property
    def file_bytes(self) -> int:
        """Bytes of all its files."""

    def read(self, names: Iterable[str] | None = None) -> dict[str, NDArray[Any]]:
        """Load tensors; all by default."""

    def suggestion(self, name: str) -> str:
        """Return ``", did you mean 'x'?"`` if a tensor's name is close, else ``""``."""

    def verify(self) -> None:
        """Compare every byte with its checksum."""

    def close(self) -> None:
        """Close the files."""

    def __enter__(self) -> Self:
        """Return itself."""

    def __exit__(self, *_: object) -> None:
        """Close the files."""


def open_checkpoint(prefix: str | Path) -> OpenCheckpoint:
    """Open a checkpoint, ours or one of TensorFlow's in its second format.

    Args:
        prefix: What ``Saver.save`` returned, or a file. Where there are both kinds, ours.

    Raises:
        CheckpointError: if there is none, or it cannot be read.
        UnimplementedError: if it is in TensorFlow's first format.
    """
    text = as_prefix(prefix, "the path of a checkpoint")
    file = find_file(text)
    if file is not None and not is_bundle(file):
        _refuse_first_format(file)
        return CheckpointReader(file)
    if is_bundle(text):
        # lazy: Protocol Buffers are for TensorFlow's checkpoints only
        from headrace_train.bundles.reader import BundleReader

        return BundleReader(prefix)
    if Path(text).is_dir():
        raise CheckpointDamagedError(
            f"{prefix} is a folder, no checkpoint; latest_checkpoint({str(prefix)!r}) tells the "
            "latest in it"
        )
    raise CheckpointNotFoundError(
        f"there is no checkpoint {prefix}: neither {file_of(text)}, nor {prefix}.index, nor a "
        "file of this name; name it as Saver.save returned it"
    )


def find_checkpoint(prefix: str | Path) -> Path | None:
    """Return the file by which a checkpoint is known, ours or TensorFlow's; None if there is none.

    Args:
        prefix: What ``Saver.save`` returned, or a file.
    """
    file = find_file(prefix)
    if file is not None:
        return file
    index = index_path(bundle_prefix(prefix))
    return index if is_regular(index) else None


def _refuse_first_format(file: Path) -> None:
    try:
        with open_regular(file) as stream:
            found = is_table(stream)
    except OSError:
        return
    if found:
        raise UnimplementedError(
            f"{file} is a checkpoint in TensorFlow's first format, which is not read; restore it "
            "with TensorFlow and save it with Saver(write_version=2)"
        )
