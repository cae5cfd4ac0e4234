"""A session target: ``hr.Session("record:steps.jsonl")`` writes a line about each step."""

import json
import threading
import time
from pathlib import Path

from headrace.errors import ConfigError
from headrace.extend import hookimpl
from headrace.extend.runtime import LocalRuntime


class RecordingStep:
    """A registered step that writes a line each time it runs."""

    def __init__(self, runtime, step, number):
        self._runtime, self._step, self._number = runtime, step, number

    def run(self, feeds):
        """Run the step; ``feeds`` are arrays of the host, and so is what it returns."""
        start = time.perf_counter()
        fetched = self._step.run(feeds)
        self._runtime.write(
            signature=self._number,
            seconds=round(time.perf_counter() - start, 6),
            fed=[list(value.shape) for value in feeds],
            fetched=[list(value.shape) for value in fetched],
        )
        return fetched


class RecordingRuntime:
    """Runs steps in this process, as a session without a target does, and records them.

    A runtime answers three questions: which devices there are to place on, how to make the
    partitions of a step ready, and how to end. This one has ``LocalRuntime`` answer them.
    """

    def __init__(self, path, options):
        self._local = LocalRuntime(options=options)
        self._lock = threading.Lock()
        self._registered = 0
        self._file = Path(path).open("a", encoding="utf-8")  # noqa: SIM115 - close() closes it

    def machine(self):
        """Return the devices to place on."""
        return self._local.machine()

    def register(self, partitions, fetches):
        """Make the partitions of a step ready to run; called once for each signature."""
        with self._lock:
            self._registered += 1
            number = self._registered
        return RecordingStep(self, self._local.register(partitions, fetches), number)

    def close(self, reason=None):
        """End the steps that still run."""
        self._local.close(reason)
        with self._lock:
            self._file.close()

    def write(self, **line):
        """Write a line, whole, whatever other threads write."""
        with self._lock:
            if not self._file.closed:
                self._file.write(json.dumps(line) + "\n")
                self._file.flush()


def open_recorder(target, config):
    """Return the runtime of one session."""
    try:
        return RecordingRuntime(target.removeprefix("record:"), config.options)
    except OSError as error:
        raise ConfigError(f"cannot write the records of {target!r}: {error.strerror}") from error


# Targets of this plugin begin with a scheme of its own.
@hookimpl
def headrace_register_targets(registry):
    registry.add("record", open_recorder)
