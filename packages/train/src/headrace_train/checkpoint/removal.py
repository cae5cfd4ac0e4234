"""Deleting checkpoints with all their files."""

from __future__ import annotations

import errno
import glob
from pathlib import Path
from typing import Any

from headrace.extend.arguments import text
from headrace_train.checkpoint.files import open_regular
from headrace_train.checkpoint.header import MAGIC
from headrace_train.checkpoint.manifest import part_files
from headrace_train.checkpoint.paths import as_prefix, find_file, is_regular

V2 = 2


def remove_checkpoint(
    checkpoint_prefix: str,
    checkpoint_format_version: Any = V2,
    meta_graph_suffix: str = "meta",
) -> None:
    """Delete a checkpoint, with its graph.

    Args:
        checkpoint_prefix: What ``Saver.save`` returned; nothing happens where there is none.
        checkpoint_format_version: Ignored: the files are looked at.
        meta_graph_suffix: The suffix of the file with the graph.

    Raises:
        CheckpointError: if the prefix is no path.
        OSError: if a file cannot be deleted.
    """
    del checkpoint_format_version
    prefix = as_prefix(checkpoint_prefix, "checkpoint_prefix")
    graph = meta_graph_file(prefix, meta_graph_suffix)
    try:
        graph.unlink(missing_ok=True)
    except ValueError:
        # NUL, or half of a surrogate pair: no file is named so.
        pass
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
    file = find_file(prefix)
    if file is not None and _begins_like_ours(file):
        parts = part_files(file)
        # Without its manifest a checkpoint in parts is none.
        file.unlink(missing_ok=True)
        for part in parts:
            part.unlink(missing_ok=True)
    # A bundle of TensorFlow.
    Path(f"{prefix}.index").unlink(missing_ok=True)
    whole = Path(prefix)
    for file in whole.parent.glob(f"{glob.escape(whole.name)}.data-?????-of-?????"):
        file.unlink()


def meta_graph_file(prefix: str, suffix: str) -> Path:
    """Return the file with the graph of a checkpoint."""
    return Path(f"{prefix}.{text(suffix, 'meta_graph_suffix')}")


def _begins_like_ours(file: Path) -> bool:
    if not is_regular(file):
        return False
    with open_regular(file) as stream:
        return stream.read(len(MAGIC)) == MAGIC
