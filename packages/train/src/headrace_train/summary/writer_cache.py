"""``FileWriterCache``: one writer for each folder."""

from __future__ import annotations

import os
import threading
from typing import ClassVar, final

import headrace as hr
from headrace_train.summary.writer import FileWriter


@final
class FileWriterCache:
    """The writers of a process, one for each folder, for parts of a program that share a file."""

    _cache: ClassVar[dict[str, FileWriter]] = {}
    _lock: ClassVar[threading.RLock] = threading.RLock()

    @staticmethod
    def get(logdir: str | os.PathLike[str]) -> FileWriter:
        """Return the writer of a folder, made with the default graph where there is none yet.

        Args:
            logdir: The folder.

        Raises:
            OpError: if the file cannot be made.
        """
        key = os.fspath(logdir)
        with FileWriterCache._lock:
            if key not in FileWriterCache._cache:
                graph = hr.get_default_graph()
                FileWriterCache._cache[key] = FileWriter(logdir, graph=graph)
            return FileWriterCache._cache[key]

    @staticmethod
    def clear() -> None:
        """Close all writers, and forget them.

        Raises:
            OpError: if the disk refuses events; all writers are closed all the same.
        """
        with FileWriterCache._lock:
            writers = list(FileWriterCache._cache.values())
            FileWriterCache._cache.clear()
            errors = []
            for writer in writers:
                try:
                    writer.close()
                except Exception as error:  # all others are closed first
                    errors.append(error)
            if errors:
                raise errors[0]
