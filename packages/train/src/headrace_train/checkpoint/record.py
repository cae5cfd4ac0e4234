"""What the savers of a folder remember of their checkpoints, so that later runs go on with it.

The file, JSON text, is called as the one that names the latest checkpoint, with ``.json``. A new
checkpoint is entered before it is written, so that no crash leaves one that the record does not
know; an entry whose file is not there is passed over.
"""

from __future__ import annotations

import json
import logging
import math
import os
import secrets
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, final

from headrace.errors import CheckpointError, shown
from headrace_train.checkpoint.files import open_regular, replaced
from headrace_train.checkpoint.paths import check_path

_FORMAT = "headrace-checkpoint-record"
_VERSION = 1
_MOST_BYTES = 1 << 26
_RUN = secrets.token_hex(8)
_log = logging.getLogger("headrace.train")

# Why a checkpoint is there: it is one of the latest; one of the best; one is kept every so many
# hours; or nothing is ever deleted.
LATEST, BEST, HOURS, ALL = "latest", "best", "hours", "all"
_REASONS = (LATEST, BEST, HOURS, ALL)


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """One checkpoint.

    Attributes:
        name: The last part of its prefix.
        series: What the names of the checkpoints have in common that count together.
        time: When it was written, in seconds since 1970.
        run: The process that wrote it.
        kept: Why it is there, one of the constants of this module.
        metric: How good it is, where the program said so.
    """

    name: str
    series: str
    time: float
    run: str
    kept: str = LATEST
    metric: float | None = None


@final
@dataclass(slots=True)
class Record:
    """What is remembered of a folder.

    Attributes:
        entries: The checkpoints, the latest last.
        keep_after: For each series the time from which on the next one is kept for its time.
    """

    entries: list[Entry] = field(default_factory=list)
    keep_after: dict[str, float] = field(default_factory=dict)

    def put(self, entry: Entry) -> None:
        """Enter a checkpoint as the latest."""
        self.remove(entry.name)
        self.entries.append(entry)

    def remove(self, name: str) -> None:
        """Forget a checkpoint."""
        self.entries = [entry for entry in self.entries if entry.name != name]

    def mark(self, name: str, kept: str) -> None:
        """Say why a checkpoint is there from now on."""
        self.entries = [
            replace(entry, kept=kept) if entry.name == name else entry for entry in self.entries
        ]


def run() -> str:
    """Return a word for this process, which no other has."""
    return f"{os.getpid()}-{_RUN}"


def record_file(folder: Path, latest_filename: str | None) -> Path:
    """Return the file of the record."""
    return folder / f"{latest_filename or 'checkpoint'}.json"


def read_record(file: Path) -> Record:
    """Return the record of a folder; an empty one if there is none or it makes no sense."""
    try:
        with open_regular(file) as stream:
            content = json.loads(stream.read(_MOST_BYTES))
        if content["format"] != _FORMAT or content["version"] != _VERSION:
            raise ValueError(f"it is of format {content['format']!r} {content['version']!r}")
        entries = [_entry(item, file) for item in content["checkpoints"]]
        keep_after = {str(k): _time(v) for k, v in content["keep_after"].items()}
    except FileNotFoundError:
        return Record()
    except (
        OSError,
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        RecursionError,
        OverflowError,
    ) as reason:
        _log.warning("passed over the record of checkpoints %s: %r", file, reason)
        return Record()
    return Record([entry for entry in entries if entry is not None], keep_after)


def write_record(file: Path, record: Record) -> None:
    """Write the record of a folder."""
    content = {
        "format": _FORMAT,
        "version": _VERSION,
        "checkpoints": [asdict(entry) for entry in record.entries],
        "keep_after": record.keep_after,
    }
    with replaced(file) as temporary:
        temporary.write_text(json.dumps(content, indent=1) + "\n")


def _entry(item: Any, file: Path) -> Entry | None:
    entry = Entry(
        name=item["name"],
        series=str(item["series"]),
        time=_time(item["time"]),
        run=str(item["run"]),
        kept=item["kept"],
        metric=None if item["metric"] is None else _time(item["metric"]),
    )
    if entry.kept not in _REASONS:
        raise ValueError(f"a checkpoint is kept because of {shown(entry.kept)}")
    try:
        check_path(entry.name, "a name")
    except CheckpointError as reason:
        _log.warning("passed over a checkpoint that %s lists: %s", file, reason)
        return None
    # Names are deleted later: nothing outside the folder may be meant.
    if not entry.name or "/" in entry.name or entry.name in (".", ".."):
        _log.warning("passed over a checkpoint that %s lists: %r is no name", file, entry.name)
        return None
    return entry


def _time(value: Any) -> float:
    number = float(value)
    if math.isnan(number):
        raise ValueError("expected a number, got nan")
    return number
