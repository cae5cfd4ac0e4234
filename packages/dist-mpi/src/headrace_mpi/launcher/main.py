"""``python -m headrace run``: starts a job, and starts it anew where a rank was lost."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from headrace_mpi.launcher import command
from headrace_mpi.launcher.options import LaunchOptions, parse
from headrace_mpi.launcher.start import Outcome, run_once


def main(argv: Sequence[str]) -> int:
    """Run a program on several ranks, and return its exit code.

    Args:
        argv: The arguments after ``run``.

    Raises:
        ConfigError: if the arguments contradict each other.
        ClusterError: if there is no ``mpirun``.
    """
    return run(parse(argv))


def run(options: LaunchOptions) -> int:
    """Run a job until it ends without the loss of a rank, or was started anew often enough."""
    outcome = run_once(options)
    for restart in range(1, options.max_restarts + 1):
        if not outcome.again:
            break
        sized = options.resized(_workers(options, outcome))
        _say(f"{_why(outcome)}: start {restart} of {options.max_restarts} anew, {_size(sized)}")
        options = sized
        outcome = run_once(options, restart)
    if outcome.without:
        _say(f"the job came to its end without {', '.join(outcome.without)}")
    if outcome.again:
        tried = f" after {options.max_restarts} restarts" if options.max_restarts else ""
        hint = "" if options.max_restarts else "; --max-restarts N goes on from a checkpoint"
        _say(f"{_why(outcome)}; the job ended with exit code {outcome.code}{tried}{hint}")
    return outcome.code


def _workers(options: LaunchOptions, outcome: Outcome) -> int:
    """Return with how many workers to go on: those for which there is room, and that came."""
    others = options.size - options.workers
    room = sum(command.slots(options).values()) - others
    wanted = room if room >= 0 and command.slots(options) else options.workers
    if 0 < outcome.came < options.size:
        # Ranks did not come; as many as did will come again.
        wanted = min(wanted, outcome.came - others)
    return max(options.min_workers, min(wanted, options.max_workers))


def _why(outcome: Outcome) -> str:
    if outcome.lost:
        return f"the job lost {', '.join(outcome.lost)}"
    return f"the job left with exit code {outcome.code}"


def _size(options: LaunchOptions) -> str:
    jobs = f" ({options.jobs})" if options.jobs else ""
    return f"on {options.size} ranks{jobs}"


def _say(text: str) -> None:
    sys.stdout.flush()
    sys.stderr.write(f"headrace: {text}\n")
    sys.stderr.flush()
