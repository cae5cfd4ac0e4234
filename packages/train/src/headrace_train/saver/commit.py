"""Writing a checkpoint into a folder that keeps account of those it has.

A new checkpoint is entered into the record of the folder, written, and named as the latest; only
then are those deleted that exceed the limits. A crash at any moment leaves a folder in which the
latest checkpoint is whole, and nothing that no later run would delete.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from headrace.errors import CheckpointError
from headrace_train.checkpoint.files import locked, remove_stale
from headrace_train.checkpoint.manifest import remove_stale_parts
from headrace_train.checkpoint.paths import find_file, prefix_of, split
from headrace_train.checkpoint.record import (
    ALL,
    LATEST,
    Entry,
    Record,
    read_record,
    record_file,
    run,
    write_record,
)
from headrace_train.checkpoint.removal import remove_checkpoint
from headrace_train.checkpoint.state import (
    earlier_list,
    get_checkpoint_state,
    is_ours,
    write_state,
)
from headrace_train.saver.retention import Retention, series_of

_STALE_SECONDS = 600.0
_log = logging.getLogger("headrace.train")


@contextlib.contextmanager
def in_folder(prefix: str) -> Iterator[None]:
    """Make the folder of a checkpoint, clean it of what killed processes left, and lock it.

    Raises:
        CheckpointError: if it cannot be made or written to.
    """
    here = Path(split(prefix)[0] or os.curdir)
    try:
        here.mkdir(parents=True, exist_ok=True)
        with locked(here):
            remove_stale(here)
            remove_stale_parts(here, _STALE_SECONDS)
            yield
    except OSError as reason:
        if isinstance(reason, CheckpointError):
            raise
        raise CheckpointError(f"the checkpoint {prefix} could not be saved: {reason}") from reason


def commit(
    retention: Retention,
    prefix: str,
    write: Callable[[], None],
    *,
    latest_filename: str | None = None,
    relative_paths: bool = False,
    metric: float | None = None,
    meta_graph_suffix: str = "meta",
) -> None:
    """Write a checkpoint, make it the latest of its folder, and delete those beyond the limits.

    Args:
        retention: What the saver remembers; the checkpoint is added.
        prefix: Where to write it, in a folder that is ``in_folder``.
        write: Writes it, in full or not at all.
        latest_filename: The name of the file that tells which is the latest.
        relative_paths: Whether that file holds paths relative to the folder.
        metric: How good it is.
        meta_graph_suffix: The suffix of files with graphs, which are deleted with checkpoints.

    Raises:
        CheckpointError: if it cannot be written; nothing has been deleted then but what earlier
            processes left beyond one more than the limits.
    """
    folder, name = split(prefix)
    here = Path(folder)
    record_at = record_file(here, latest_filename)
    record = read_record(record_at)
    new = not record_at.exists()
    reason = LATEST if retention.policy.latest else ALL
    if new:
        record.entries = [
            Entry(old, series_of(old), written, "earlier version")
            for old, written in earlier_list(here, latest_filename)
        ]
    known = None if metric is None or math.isnan(metric) else metric
    entry = Entry(name, series_of(name), time.time(), run(), reason, known)
    # Entries without a file are left from writes that failed or were interrupted.
    for other in list(record.entries):
        if find_file(here / other.name) is None:
            record.remove(other.name)
    if retention.is_new_to(folder, entry.series):
        _put_latest_last(record, folder, latest_filename)
        retention.adopt(folder, entry.series, record, run())
        _delete_surplus(retention, meta_graph_suffix)
    rewritten = find_file(prefix) is not None
    if not rewritten:
        # A name that is written again counts as the latest only once it is: until then the file
        # under it is an old one.
        record.put(entry)
        write_record(record_at, record)
    try:
        write()
    except BaseException:
        if not rewritten:
            _forget(record_at, name, new=new)
        raise
    retention.add(prefix, entry.time, metric)
    latest = [path for path, _ in retention.latest]
    write_state(folder, prefix, latest, latest_filename, relative=relative_paths)
    _delete_surplus(retention, meta_graph_suffix)
    before = (list(record.entries), dict(record.keep_after))
    retention.update(record, entry, folder)
    if rewritten or before != (record.entries, record.keep_after):
        write_record(record_at, record)


def _put_latest_last(record: Record, folder: str, latest_filename: str | None) -> None:
    """Bring the record's order up to date, as the latest checkpoint must be the last to go.

    A name that is written again moves to the end of the record after it is committed only: a
    process that was ended in between leaves the latest one where an old one of its name stood.
    """
    try:
        state = get_checkpoint_state(folder or os.curdir, latest_filename)
    except CheckpointError:
        return
    name = "" if state is None else split(prefix_of(state.model_checkpoint_path))[1]
    for entry in record.entries:
        if name and prefix_of(entry.name) == name:
            record.put(entry)
            return


def _forget(record_at: Path, name: str, *, new: bool) -> None:
    """Take back the entry of a checkpoint that could not be written."""
    with contextlib.suppress(OSError):
        if new:
            record_at.unlink(missing_ok=True)
        else:
            record = read_record(record_at)
            record.remove(name)
            write_record(record_at, record)


def _delete_surplus(retention: Retention, meta_graph_suffix: str) -> None:
    for path in retention.take_surplus():
        found = find_file(path)
        if found is not None and not is_ours(found):
            # A user's own file, under the name that a checkpoint had.
            continue
        try:
            remove_checkpoint(path, meta_graph_suffix=meta_graph_suffix)
        except (OSError, CheckpointError) as reason:
            _log.warning("could not delete the checkpoint %s: %s", path, reason)
            retention.put_back(path)
        else:
            _log.info(
                "deleted the checkpoint %s, to keep the latest %s", path, retention.policy.latest
            )
