"""The command line of the store: what is in a file, is it sound, how do two files differ.

Nothing here builds a model or loads a tensor.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.errors import CheckpointError
from headrace_train.checkpoint.directory import latest_checkpoint
from headrace_train.checkpoint.reader import CheckpointReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headrace_train.checkpoint.header import TensorEntry


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: Words of the command line; those of the process by default.

    Returns:
        0 for success (``verify``: sound; ``diff``: equal), 1 for damage or a difference, 2 for a
        file that cannot be read at all.
    """
    options = _parser().parse_args(arguments)
    try:
        if options.command == "ls":
            return _ls(options.file, as_json=options.json)
        if options.command == "verify":
            return _verify(options.files)
        return _diff(options.first, options.second)
    except CheckpointError as fault:
        sys.stderr.write(f"{fault}\n")
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m headrace_train.checkpoint",
        description="List, verify and compare checkpoints. A folder stands for its latest one.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    ls = commands.add_parser("ls", help="list the tensors of a checkpoint, without loading them")
    ls.add_argument("file", type=Path)
    ls.add_argument("--json", action="store_true", help="print JSON")
    verify = commands.add_parser("verify", help="compare every byte with its checksum")
    verify.add_argument("files", type=Path, nargs="+")
    diff = commands.add_parser("diff", help="say in which tensors two checkpoints differ")
    diff.add_argument("first", type=Path)
    diff.add_argument("second", type=Path)
    return parser


def _open(file: Path) -> CheckpointReader:
    if file.is_dir():
        latest = latest_checkpoint(file)
        if latest is None:
            raise CheckpointError(f"there is no sound checkpoint in the folder {file}")
        return CheckpointReader(latest)
    return CheckpointReader(file)


def _ls(file: Path, *, as_json: bool) -> int:
    with _open(file) as reader:
        facts = {
            "file": str(reader.path),
            "bytes": reader.file_bytes,
            "step": reader.step,
            "producers": dict(reader.producers),
            "metadata": dict(reader.metadata),
        }
        entries = list(reader.tensors.values())
    if as_json:
        tensors = [asdict(entry) | {"crc32": f"{entry.crc32:08x}"} for entry in entries]
        _print(json.dumps(facts | {"tensors": tensors}, indent=1))
        return 0
    _print(f"{facts['file']}: {len(entries)} tensors, {facts['bytes']} bytes")
    _print(f"step: {'none' if reader.step is None else reader.step}")
    _print("written by: " + ", ".join(f"{k} {v}" for k, v in reader.producers.items()))
    if reader.metadata:
        _print("metadata: " + json.dumps(facts["metadata"]))
    rows = [(e.name, _kind(e), f"{e.nbytes} bytes", f"crc32 {e.crc32:08x}") for e in entries]
    _print_table(rows)
    return 0


def _verify(files: Iterable[Path]) -> int:
    worst = 0
    for file in files:
        try:
            reader = _open(file)
        except CheckpointError as fault:
            _print(f"{fault}")
            worst = 2
            continue
        with reader:
            try:
                reader.verify()
            except CheckpointError as fault:
                _print(f"{fault}")
                worst = max(worst, 1)
            else:
                _print(f"{reader.path}: sound, {len(reader.tensors)} tensors")
    return worst


def _diff(first: Path, second: Path) -> int:
    with _open(first) as left, _open(second) as right:
        rows = []
        if left.step != right.step:
            rows.append(("~", "(step)", f"{left.step} -> {right.step}"))
        for name in dict.fromkeys([*left.tensors, *right.tensors]):
            old, new = left.tensors.get(name), right.tensors.get(name)
            if new is None and old is not None:
                rows.append(("-", name, _kind(old)))
            elif old is None and new is not None:
                rows.append(("+", name, _kind(new)))
            elif old is not None and new is not None and _kind(old) != _kind(new):
                rows.append(("~", name, f"{_kind(old)} -> {_kind(new)}"))
            elif old is not None and new is not None and old.crc32 != new.crc32:
                rows.append(("~", name, f"{_kind(old)}, other values"))
    _print_table(rows)
    return 1 if rows else 0


def _kind(entry: TensorEntry) -> str:
    return f"{entry.dtype}[{', '.join(map(str, entry.shape))}]"


def _print_table(rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        _print("  ".join(cells).rstrip())


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
