"""The controller's end of one participant's process."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, Self

from benchmarks.participant import Request, Sample

ROOT = Path(__file__).resolve().parent.parent

# The pools of BLAS, OpenMP, MKL and numba are sized when their libraries load.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)

_QUIET = {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    # All participants compute on the CPU, also where there is a GPU.
    "CUDA_VISIBLE_DEVICES": "",
    "JAX_PLATFORMS": "cpu",
}


class ParticipantError(Exception):
    """A participant raised, ended, or did not answer in time; it leaves the run."""


class ParticipantUnavailableError(ParticipantError):
    """A participant said what this installation lacks for it."""


def environment(threads: int) -> dict[str, str]:
    """Return the environment of a participant that may use this many threads.

    Python may keep the bytecode that it compiles: pip compiled that of the installed libraries, but
    not of one that is installed from a checkout, whose every import would compile it again.
    """
    counts = dict.fromkeys(THREAD_VARIABLES, str(threads))
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, **_QUIET, **counts}


class ParticipantProcess:
    """Starts a participant's process, asks it, and ends it.

    Used as a context manager. The process waits in a read between requests, so that it takes no
    time from the participant whose turn it is.
    """

    def __init__(self, threads: int, python: str = "") -> None:
        """Start the process.

        Args:
            threads: threads that it may use.
            python: the interpreter, which may be of another environment; "" for this one.
        """
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            [python or sys.executable, "-m", "benchmarks.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=ROOT,
            env=environment(threads),
            encoding="utf-8",
        )
        self._replies: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        """Return this process."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self.close()

    def build(self, module: str, request: Request, timeout_s: float) -> None:
        """Let the process import ``module`` and build the participant."""
        self._ask({"do": "build", "module": module, **asdict(request)}, timeout_s)

    def settle(self, timeout_s: float) -> None:
        """Let the process count its peak memory from now on."""
        self._ask({"do": "settle"}, timeout_s)

    def round(self, timeout_s: float) -> Sample:
        """Let the participant run one timed round."""
        reply = self._ask({"do": "round"}, timeout_s)
        step_bytes = reply["step_bytes"]
        return Sample(
            float(reply["seconds"]),
            int(reply["memory_bytes"]),
            None if step_bytes is None else int(step_bytes),
            {name: float(seconds) for name, seconds in reply["more_seconds"].items()},
        )

    def loss(self, timeout_s: float) -> float | None:
        """Return the participant's loss after all rounds so far."""
        loss = self._ask({"do": "loss"}, timeout_s)["loss"]
        return None if loss is None else float(loss)

    def costs(self, timeout_s: float) -> dict[str, Any] | None:
        """Return what the participant says of the costs of a step, None if it says nothing."""
        costs: dict[str, Any] | None = self._ask({"do": "costs"}, timeout_s)["costs"]
        return costs

    def alive(self) -> bool:
        """Tell whether the process runs."""
        return self._process.poll() is None

    def close(self) -> None:
        """End the process, by force if it does not end when its input does."""
        if self._process.stdin is not None:
            # A process that has ended already takes no more input.
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(timeout=5)
        if self._process.stdout is not None and not self._reader.is_alive():
            self._process.stdout.close()
        self._log.close()

    def _read(self) -> None:
        """Pass the lines that arrive to the queue, None at the end."""
        if self._process.stdout is not None:
            for line in self._process.stdout:
                self._replies.put(line)
        self._replies.put(None)

    def _ask(self, message: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        """Send a request and return the reply.

        Raises:
            ParticipantError: when the reply is an error, or there is none.
        """
        stdin = self._process.stdin
        try:
            if stdin is not None:
                stdin.write(json.dumps(message) + "\n")
                stdin.flush()
            line = self._replies.get(timeout=timeout_s)
        except BrokenPipeError:
            line = None
        except queue.Empty:
            self._process.kill()
            self._process.wait()
            what = f"no answer to {message['do']!r} within {timeout_s:g} s"
            raise ParticipantError(what) from None
        if line is None:
            raise ParticipantError(self._epitaph())
        reply: dict[str, Any] = json.loads(line)
        if reply.get("unavailable"):
            raise ParticipantUnavailableError(str(reply["error"]))
        if "error" in reply:
            raise ParticipantError(str(reply["error"]))
        return reply

    def _epitaph(self) -> str:
        """Say how the process ended, with the last line of what it printed."""
        code = self._process.wait()
        how = f"ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        self._log.seek(0)
        lines = self._log.read().decode("utf-8", "replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        return f"{how}: {said[-1]}" if said else how
