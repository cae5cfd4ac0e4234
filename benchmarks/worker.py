"""The process of one participant: reads requests and writes replies, one JSON object a line.

Started by ``benchmarks.controller`` as ``python -m benchmarks.worker``. The requests are
``{"do": "build", "module": ..., "peer": ..., "variant": ..., "threads": ..., "workload": ...}``,
then any number of ``{"do": "round"}``, ``{"do": "settle"}``, ``{"do": "loss"}`` and
``{"do": "costs"}``. A second ``build`` takes the place of the first. Replies carry the answer, or
``error`` with one line of text, and ``unavailable`` where the error says that this installation
lacks something. The end of the input ends the process.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, TextIO

from benchmarks.memory import METER
from benchmarks.participant import Participant, Request, UnavailableError


def limit_cpus(threads: int) -> None:
    """Keep this process on as many CPUs as it may use threads.

    Some libraries size their pools by the CPUs they see, whatever they are told.
    """
    if not hasattr(os, "sched_getaffinity"):
        return
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) > threads:
        os.sched_setaffinity(0, allowed[:threads])


def build(message: Mapping[str, Any]) -> Participant:
    """Import the participant's module and let it build the participant."""
    limit_cpus(message["threads"])
    module = importlib.import_module(message["module"])
    METER.note_imports()
    request = Request(message["peer"], message["variant"], message["threads"], message["workload"])
    participant: Participant = module.build(request)
    return participant


def serve(requests: TextIO, reply: Callable[[Mapping[str, Any]], None]) -> None:
    """Answer requests until they end; an exception is an answer too."""
    participant: Participant | None = None
    for line in requests:
        message = json.loads(line)
        try:
            if message["do"] == "build":
                participant = build(message)
                reply({"ready": True})
            elif participant is None:
                reply({"error": "nothing has been built yet"})
            elif message["do"] == "round":
                reply(asdict(participant.round()))
            elif message["do"] == "settle":
                METER.settle()
                reply({"settled": True})
            elif message["do"] == "costs":
                costs = getattr(participant, "costs", None)
                reply({"costs": None if costs is None else costs()})
            else:
                reply({"loss": participant.loss()})
        except UnavailableError as error:
            reply({"error": str(error), "unavailable": True})
        except Exception as error:
            traceback.print_exc()
            reply({"error": one_line(error)})


def one_line(error: BaseException) -> str:
    """Return the type and the first line of an exception's text."""
    text = str(error).strip()
    first = text.splitlines()[0] if text else ""
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def main() -> None:
    """Serve on standard input and output.

    Libraries print to standard output as they like, so the replies get a copy of that
    descriptor, and the descriptor itself is turned to standard error.
    """
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def reply(message: Mapping[str, Any]) -> None:
        replies.write(json.dumps(message) + "\n")
        replies.flush()

    serve(sys.stdin, reply)


if __name__ == "__main__":
    main()
