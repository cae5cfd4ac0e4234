"""``python -m headrace flight``: what the flight records of a job's ranks tell together."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headrace.errors import DataLossError, NotFoundError, shown
from headrace_mpi.flight.record import Noted, lost_frames
from headrace_mpi.steps.rendezvous import client_of, number_of
from headrace_mpi.transport.wire import Kind

_LAST = 5


def main(words: Sequence[str]) -> int:
    """Print who did what last, and which frames never came.

    Args:
        words: The files of the ranks, or a folder of them.

    Raises:
        NotFoundError: if there is no such file.
        DataLossError: if a file is no flight record.
    """
    parser = argparse.ArgumentParser(
        prog="python -m headrace flight",
        description="Tell from the flight records of a job's ranks which frames were sent and "
        "never came, and what each rank did last.",
    )
    parser.add_argument("files", nargs="+", type=Path, help="the records, or a folder of them")
    parser.add_argument(
        "--last", type=int, default=_LAST, metavar="N", help="show so many frames of each rank"
    )
    options = parser.parse_args(words)
    files = [
        file
        for path in options.files
        for file in (sorted(path.glob("*.jsonl")) if path.is_dir() else [path])
    ]
    if not files:
        raise NotFoundError(f"there is no flight record (*.jsonl) in {options.files[0]}")
    records = dict(sorted(map(_read, files), key=lambda record: record[0]))
    end = max(head["now"] + head["epoch"] for head, _ in records.values())
    lines = []
    for rank, (head, notes) in records.items():
        age = (end - head["now"] - head["epoch"]) / 1e9
        about = f"{len(notes)} frames, {age:.3f} s ago"
        lines.append(f"rank {rank} ({head['task']}): {head['reason']}; {about}")
        lines += [f"  {_told(rank, noted, end)}" for noted in notes[-options.last :]]
    missing = lost_frames((rank, notes) for rank, (_, notes) in records.items())
    lines.append(f"frames that were sent and never came: {len(missing) or 'none'}")
    lines += [f"  {_told(rank, noted, end)}" for rank, noted in missing[: 4 * options.last]]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _read(path: Path) -> tuple[int, tuple[dict[str, Any], list[Noted]]]:
    """Return the rank, the head and the frames of a record, with times since 1970."""
    try:
        head, *lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        epoch = head["epoch"]
        notes = [
            Noted(**{**line, "kind": Kind[line["kind"]], "at": line["at"] + epoch})
            for line in lines
        ]
        return int(head["rank"]), ({"reason": "", "task": "", **head}, notes)
    except OSError as error:
        raise NotFoundError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise DataLossError(f"{path} is no flight record: {shown(error, 200)}") from error


def _told(rank: int, noted: Noted, end: int) -> str:
    way = f"{rank} -> {noted.peer}" if noted.sent else f"{noted.peer} -> {rank}"
    about = ""
    if noted.step:
        about = f" step {number_of(noted.step)} of rank {client_of(noted.step)}"
    if noted.edge:
        about += f", edge {noted.edge}" + (f" ({noted.iteration})" if noted.iteration else "")
    return f"{(noted.at - end) / 1e9:+.6f} s  {way}  {noted.kind.name}{about}"
