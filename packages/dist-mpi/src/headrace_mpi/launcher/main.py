"""``python -m headrace run``: starts a job, and starts it anew where a rank was lost."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from headrace_mpi.launcher import command
from headrace_mpi.launcher.request import Request, parse
from headrace_mpi.launcher.start import Outcome, run_once


def main(words: Sequence[str]) -> int:
    """Run a program on several ranks, and return its exit code.

    Args:
        words: The words after ``run``.

    Raises:
        ConfigError: if the words contradict each other.
        ClusterError: if there is no ``mpirun``.
    """
    return run(parse(words))


def run(request: Request) -> int:
    """Run a job until it ends without the loss of a rank, or was started anew often enough."""
    outcome = run_once(request)
    for restart in range(1, request.max_restarts + 1):
        if not outcome.again:
            break
        sized = request.resized(_workers(request, outcome))
        _say(f"{_why(outcome)}: start {restart} of {request.max_restarts} anew, {_size(sized)}")
        request = sized
        outcome = run_once(request, restart)
    if outcome.without:
        _say(f"the job came to its end without {', '.join(outcome.without)}")
    if outcome.again:
        tried = f" after {request.max_restarts} restarts" if request.max_restarts else ""
        hint = "" if request.max_restarts else "; --max-restarts N goes on from a checkpoint"
        _say(f"{_why(outcome)}; the job ended with exit code {outcome.code}{tried}{hint}")
    return outcome.code


def _workers(request: Request, outcome: Outcome) -> int:
    """Return with how many workers to go on: those for which there is room, and that came."""
    others = request.size - request.workers
    room = sum(command.slots(request).values()) - others
    wanted = room if room >= 0 and command.slots(request) else request.workers
    if 0 < outcome.came < request.size:
        # Ranks did not come; as many as did will come again.
        wanted = min(wanted, outcome.came - others)
    return max(request.min_workers, min(wanted, request.max_workers))


def _why(outcome: Outcome) -> str:
    if outcome.lost:
        return f"the job lost {', '.join(outcome.lost)}"
    return f"the job left with exit code {outcome.code}"


def _size(request: Request) -> str:
    jobs = f" ({request.jobs})" if request.jobs else ""
    return f"on {request.size} ranks{jobs}"


def _say(text: str) -> None:
    sys.stdout.flush()
    sys.stderr.write(f"headrace: {text}\n")
    sys.stderr.flush()
