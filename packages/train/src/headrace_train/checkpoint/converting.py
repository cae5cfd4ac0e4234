"""Writing a checkpoint again in the other format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from headrace.errors import AlreadyExistsError
from headrace_train.bundles.paths import bundle_prefix, data_path, index_path, is_bundle
from headrace_train.bundles.writer import write_bundle
from headrace_train.checkpoint.writer import write_checkpoint

if TYPE_CHECKING:
    from headrace_train.checkpoint.opening import OpenCheckpoint

_SUFFIX = ".h5"
# The variable in which programs count steps, by custom; bundles have no other place for it.
_STEP = "global_step"


def convert(source: OpenCheckpoint, target: str | Path, to: str | None = None) -> tuple[Path, str]:
    """Write all tensors of a checkpoint to a new one. All of them are in memory meanwhile.

    Args:
        source: The open checkpoint.
        target: The prefix of the new one.
        to: ``"hdf5"`` or ``"v2"``; the format that the source does not have if None.

    Returns:
        The prefix or file that was written, and what it cannot hold of the source.

    Raises:
        AlreadyExistsError: if there is a checkpoint of this name.
        CheckpointError: if the source is damaged, or the target cannot be written.
    """
    if to is None:
        to = "hdf5" if is_bundle(source.path) else "v2"
    if to == "v2":
        prefix = Path(bundle_prefix(target))
        _refuse(index_path(prefix), data_path(prefix, 0, 1))
        write_bundle(prefix, source.read())
        kept = source.step is None or _STEP in source.tensors
        lost = [] if kept else [f"the step {source.step}"]
        lost += [f"metadata {name!r}" for name in source.metadata]
        return prefix, ", ".join(lost)
    file = Path(f"{str(target).removesuffix(_SUFFIX)}{_SUFFIX}")
    _refuse(file)
    write_checkpoint(file, source.read(), step=source.step, metadata=dict(source.metadata))
    return file, ""


def _refuse(*files: Path) -> None:
    for file in files:
        if file.exists():
            raise AlreadyExistsError(
                f"{file} is there already, and may be what another checkpoint needs; choose "
                "another name, or remove it"
            )
