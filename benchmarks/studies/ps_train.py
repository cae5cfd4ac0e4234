"""A language model trained on parameter servers, beside TensorFlow's gRPC and torch's gloo.

One layer of LSTM on the worker, and two tables of 40 000 rows on the servers: embeddings, and the
weights of the softmax. The full softmax is multiplied where its weights are, so that more servers
share the work; of the sampled one only the rows of 512 classes travel. How many words a second
come out is counted for one to four servers, and for one and two workers.

References:
    M. Abadi et al., TensorFlow: a system for large-scale machine learning, OSDI 2016, section 6.4.
"""

from __future__ import annotations

import importlib.util

from benchmarks.controller import Progress, RunSettings
from benchmarks.peers import NOT_INSTALLED
from benchmarks.ps_train.sizes import KINDS, WORDS
from benchmarks.server_jobs.start import Found, run_job
from benchmarks.studies import Result
from benchmarks.table import figure, row

SERVERS = (1, 2, 4)
WORKERS = (1, 2)
# The module of each participant, and what it needs.
PARTICIPANTS = {"headrace": "headrace_mpi", "tensorflow": "tensorflow", "gloo": "torch"}
_HEAD = (
    *("softmax", "ps", "workers", "participant", "words a second", "ms per step"),
    *("CPU ms per step", "loss at the end"),
)


def run(settings: RunSettings, progress: Progress) -> Result:
    """Measure all participants in turn."""
    lines = [row(_HEAD), row(["---", "---:", "---:", "---", *["---:"] * (len(_HEAD) - 4)])]
    for kind in KINDS:
        for servers in SERVERS:
            for workers in WORKERS:
                for participant, module in PARTICIPANTS.items():
                    start = [kind, str(servers), str(workers), participant]
                    if importlib.util.find_spec(module) is None:
                        lines.append(row([*start, NOT_INSTALLED]))
                        continue
                    progress(f"ps-train: {', '.join(start)}")
                    seconds = 0.5 * min(settings.rounds, 10)
                    found = measure(participant, kind, servers, workers, seconds)
                    lines.append(row([*start, *_cells(found)]))
    return Result(lines)


def measure(participant: str, kind: str, servers: int, workers: int, seconds: float) -> Found:
    """Run one job, and return what it cost."""
    return run_job("ps_train", participant, kind, workers, servers, seconds)


def _cells(found: Found) -> list[str]:
    each = (found.steps_s * WORDS, found.step_s * 1e3, found.cpu_s * 1e3)
    return [*map(figure, each), f"{found.result:.2f}"]
