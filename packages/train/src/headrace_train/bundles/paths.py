"""The files of a bundle, by the prefix that names it."""

from __future__ import annotations

import re
from pathlib import Path

INDEX = ".index"
_DATA = re.compile(r"\.data-\d{5}-of-\d{5}$")


def index_path(prefix: str | Path) -> Path:
    """Return the file that says where each tensor lies."""
    return Path(f"{prefix}{INDEX}")


def data_path(prefix: str | Path, shard: int, shards: int) -> Path:
    """Return one of the files that hold the tensors."""
    return Path(f"{prefix}.data-{shard:05d}-of-{shards:05d}")


def bundle_prefix(path: str | Path) -> str:
    """Return the prefix of a bundle, given that or one of its files."""
    text = str(path)
    return _DATA.sub("", text).removesuffix(INDEX)


def is_bundle(path: str | Path) -> bool:
    """Whether there is the index of a bundle for a prefix, or ``path`` is a file of one."""
    return index_path(bundle_prefix(path)).is_file()
