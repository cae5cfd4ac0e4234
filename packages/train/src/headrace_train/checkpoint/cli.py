"""``python -m headrace checkpoint``: what is in a checkpoint, is it sound, how do two differ.

Nothing here builds a model. Checkpoints of ``Saver`` and of TensorFlow may stand beside each other.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.errors import CheckpointError, CheckpointNotFoundError, HeadraceError
from headrace_train.checkpoint.opening import open_checkpoint
from headrace_train.checkpoint.state import latest_checkpoint

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headrace_train.checkpoint.opening import OpenCheckpoint, StoredTensor

_FOLDER = "A checkpoint is named by its prefix or file; a folder stands for its latest one."
_LONGEST_TEXT = 60


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: Words of the command line; those of the process by default.

    Returns:
        0 for success (``verify``: sound; ``diff``: equal), 1 for damage or a difference, 2 for a
        checkpoint that cannot be read, or written, at all.
    """
    options = _parser().parse_args(arguments)
    try:
        if options.command == "ls":
            return _ls(options.file, as_json=options.json, about=options.about)
        if options.command == "verify":
            return _verify(options.files)
        if options.command == "convert":
            return _convert(options.source, options.target, options.to)
        return _diff(options.first, options.second)
    except HeadraceError as fault:
        sys.stderr.write(f"{fault}\n")
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m headrace checkpoint",
        description="List, verify, compare and convert checkpoints, those of hr.train.Saver and "
        "those of TensorFlow in its second format.",
        epilog=_FOLDER,
    )
    commands = parser.add_subparsers(dest="command", required=True)

    def add(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(
            name, help=text, description=f"{text.capitalize()}.", epilog=_FOLDER
        )

    ls = add("ls", "print a line for each tensor: dtype, shape, bytes, name; none is loaded")
    ls.add_argument("file", type=Path)
    ls.add_argument("--about", action="store_true", help="print first what is known of the file")
    ls.add_argument("--json", action="store_true", help="print JSON")
    verify = add("verify", "compare every byte with its checksum; exit code 1 for damage")
    verify.add_argument("files", type=Path, nargs="+")
    diff = add(
        "diff", "say in which tensors two checkpoints differ, and by how much; exit code 1 if so"
    )
    diff.add_argument("first", type=Path)
    diff.add_argument("second", type=Path)
    convert = add("convert", "write a checkpoint again in the other format")
    convert.add_argument("source", type=Path)
    convert.add_argument("target", type=Path, help="prefix of the new one, which is not there yet")
    convert.add_argument(
        "--to",
        choices=("hdf5", "v2"),
        help="hdf5 for that of hr.train.Saver, v2 for that of TensorFlow; the other one by default",
    )
    return parser


def _open(file: Path) -> OpenCheckpoint:
    if file.is_dir():
        latest = latest_checkpoint(file)
        if latest is None:
            raise CheckpointNotFoundError(f"there is no sound checkpoint in the folder {file}")
        return open_checkpoint(latest)
    return open_checkpoint(file)


def _brief(item: Any) -> Any:
    """Return metadata with long texts, such as input positions, cut short."""
    if isinstance(item, dict):
        return {key: _brief(value) for key, value in item.items()}
    if isinstance(item, str) and len(item) > _LONGEST_TEXT:
        return f"{item[:_LONGEST_TEXT]}... ({len(item)} characters)"
    return item


def _ls(file: Path, *, as_json: bool, about: bool) -> int:
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
        _print(json.dumps(facts | {"tensors": [_as_json(entry) for entry in entries]}, indent=1))
        return 0
    if about:
        _print(f"{facts['file']}: {len(entries)} tensors, {facts['bytes']} bytes")
        _print(f"step: {'none' if facts['step'] is None else facts['step']}")
        _print("written by: " + ", ".join(f"{k} {v}" for k, v in reader.producers.items()))
        if reader.metadata:
            _print("metadata: " + json.dumps(_brief(facts["metadata"])))
    _print_table([(e.dtype, _shape(e), str(e.nbytes), _name(e.name)) for e in entries])
    return 0


def _as_json(entry: StoredTensor) -> dict[str, Any]:
    return {
        "name": entry.name,
        "dtype": entry.dtype,
        "shape": list(entry.shape),
        "nbytes": entry.nbytes,
    }


def _verify(files: Iterable[Path]) -> int:
    worst = 0
    for file in files:
        try:
            reader = _open(file)
        except HeadraceError as fault:
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
    # lazy: the other commands load no arrays
    from headrace_train.checkpoint.differences import difference

    found = False
    with _open(first) as left, _open(second) as right:
        if left.step != right.step:
            found = True
            _print(f"~ (step): {left.step} -> {right.step}")
        for name in dict.fromkeys([*left.tensors, *right.tensors]):
            old, new = left.tensors.get(name), right.tensors.get(name)
            line = ""
            if new is None and old is not None:
                line = f"- {_name(name)}: {_kind(old)}"
            elif old is None and new is not None:
                line = f"+ {_name(name)}: {_kind(new)}"
            elif old is not None and new is not None and _kind(old) != _kind(new):
                line = f"~ {_name(name)}: {_kind(old)} -> {_kind(new)}"
            elif old is not None and new is not None and not _same_checksum(old, new):
                much = difference(left.read([name])[name], right.read([name])[name])
                line = f"~ {_name(name)}: {_kind(old)}, {much}" if much else ""
            if line:
                found = True
                _print(line)
    return 1 if found else 0


def _convert(source: Path, target: Path, to: str | None) -> int:
    # lazy: the other commands write nothing
    from headrace_train.checkpoint.converting import convert

    with _open(source) as reader:
        written, lost = convert(reader, target, to)
        if lost:
            sys.stderr.write(f"left out, as bundles cannot hold it: {lost}\n")
        _print(f"{written}: {len(reader.tensors)} tensors")
    return 0


def _same_checksum(old: StoredTensor, new: StoredTensor) -> bool:
    """Whether tensors of one kind of file are equal, as their checksums tell."""
    first, second = getattr(old, "crc32", None), getattr(new, "crc32", None)
    return first is not None and first == second


def _kind(entry: StoredTensor) -> str:
    return f"{entry.dtype}{_shape(entry)}"


def _shape(entry: StoredTensor) -> str:
    return f"[{','.join(map(str, entry.shape))}]"


def _name(name: str) -> str:
    """Return a name as it is, or quoted where it would break a line."""
    return name if name.isprintable() else repr(name)


def _print_table(rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        _print("  ".join(cells).rstrip())


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
