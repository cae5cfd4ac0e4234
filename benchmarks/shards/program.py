"""What each rank runs: lookups in tables of two sizes, a variable in shards, networks on a server.

    mpirun -n 4 python -m benchmarks.shards.program PART OUT ROUNDS

writes what the worker found as JSON into the file OUT; ``network`` also runs in one process. All
that is compared takes turns, step by step or block by block, and the quickest of each counts.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import headrace as hr

STRATEGIES = ("mod", "div")
# Rows of the two tables, their columns, and how many of the rows a step moves.
ROWS, DIM, TAKEN = (60_000, 960_000), 32, 1024
# Rows of variables that steps move whole, of 64 columns.
WHOLE = (1_000, 16_000, 128_000)
WHOLE_DIM, MOST_SHARDS = 64, 8
# Layers of the network of eight variables, by the size of its batch.
LAYERS = {8: (16, 32, 32, 32, 4), 128: (784, 512, 512, 512, 10)}
_WARM = 5

Call = Callable[[], Any]


def in_shards(servers: int, rows: int, dim: int, count: int, name: str) -> list[Any]:
    """Return a variable in shards that go around the servers."""
    sizes = [len(part) for part in np.array_split(np.arange(rows), count)]
    found = []
    for i, size in enumerate(sizes):
        with hr.device(f"/job:ps/task:{i % servers}"):
            found.append(hr.Variable(hr.zeros([size, dim]), name=f"{name}_{i}"))
    return found


def quickest(calls: Mapping[Any, Call], rounds: int) -> dict[str, float]:
    """Return the seconds of the quickest call of each, called in turns."""
    for call in calls.values():
        for _ in range(_WARM):
            call()
    least = dict.fromkeys(map(str, calls), float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            begin = time.perf_counter()
            call()
            least[str(name)] = min(least[str(name)], time.perf_counter() - begin)
    return least


def lookups(cluster: Any, rounds: int) -> dict[str, Any]:
    """Return the seconds of a step that moves some rows, by strategy and rows of the table."""
    servers = cluster.num_tasks("ps")
    rng = np.random.default_rng(0)
    steps: dict[str, tuple[Any, Any, int]] = {}
    for strategy in STRATEGIES:
        for rows in ROWS:
            name = f"{strategy} {rows}"
            parts = in_shards(servers, rows, DIM, servers, name.replace(" ", "_"))
            ids = hr.placeholder(hr.int64, [TAKEN])
            loss = hr.reduce_sum(hr.square(hr.nn.embedding_lookup(parts, ids, strategy) - 1.0))
            steps[name] = hr.train.GradientDescentOptimizer(0.01).minimize(loss), ids, rows
    with hr.Session(cluster.target) as session:
        session.run(hr.global_variables_initializer())
        calls: dict[Any, Call] = {}
        for name, (step, ids, rows) in steps.items():
            run = session.make_callable(step, [ids])
            calls[name] = functools.partial(_with_rows, run, rng, rows)
        return quickest(calls, 20 * rounds)


def _with_rows(run: Callable[..., Any], rng: np.random.Generator, rows: int) -> None:
    run(rng.integers(0, rows, TAKEN))


def traffic(cluster: Any, rounds: int) -> dict[str, Any]:
    """Look rows up in both ways; every server writes what it sent."""
    servers, rows = cluster.num_tasks("ps"), ROWS[0]
    ids = hr.placeholder(hr.int64, [TAKEN])
    found = []
    for strategy in STRATEGIES:
        parts = in_shards(servers, rows, DIM, 2 * servers, strategy)
        found.append(hr.nn.embedding_lookup(parts, ids, strategy))
    rng = np.random.default_rng(0)
    with hr.Session(cluster.target) as session:
        session.run(hr.global_variables_initializer())
        run = session.make_callable(found, [ids])
        for _ in range(10 * rounds):
            run(rng.integers(0, rows, TAKEN))
    return {}


def whole(cluster: Any, rounds: int) -> dict[str, Any]:
    """Return seconds by rows and shards of a variable that steps move whole, and the suggestion."""
    servers = cluster.num_tasks("ps")
    with hr.Graph().as_default() as undivided:
        for rows in WHOLE:
            with hr.device("/job:ps/task:0"):
                hr.Variable(hr.zeros([rows, WHOLE_DIM]), name=f"whole_{rows}")
    suggested = hr.dist.suggest_shards(undivided, cluster, max_shards=MOST_SHARDS)
    found: dict[str, Any] = {}
    for rows in WHOLE:
        with hr.Graph().as_default():
            steps = {}
            for count in range(1, MOST_SHARDS + 1):
                parts = in_shards(servers, rows, WHOLE_DIM, count, f"v{rows}_{count}")
                here = f"/job:worker/task:{cluster.task_index}"
                with hr.device(here):
                    changes = [hr.identity(part) * 0.5 for part in parts]
                steps[count] = hr.group(
                    *(hr.assign_sub(p, c).op for p, c in zip(parts, changes, strict=True))
                )
            with hr.Session(cluster.target) as session:
                session.run(hr.global_variables_initializer())
                calls = {count: session.make_callable(step) for count, step in steps.items()}
                # Short steps are disturbed more easily.
                more = max(1, min(10, WHOLE[-1] // rows))
                times = quickest(calls, 4 * rounds * more)
        found[str(rows)] = {"seconds": times, "suggested": suggested[f"whole_{rows}"]}
    return found


def network(target: str, device: str, rounds: int) -> dict[str, Any]:
    """Return the seconds, and the processor's, of a step of networks with variables on a device."""
    found: dict[str, Any] = {}
    rng = np.random.default_rng(0)
    for batch, sizes in LAYERS.items():
        with hr.Graph().as_default() as graph:
            x = h = hr.placeholder(hr.float32, [batch, sizes[0]])
            for i in range(len(sizes) - 1):
                with hr.device(device):
                    start = rng.normal(size=sizes[i : i + 2]).astype(np.float32) * 0.05
                    w = hr.Variable(start, name=f"w_{batch}_{i}")
                    b = hr.Variable(hr.zeros([sizes[i + 1]]), name=f"b_{batch}_{i}")
                h = hr.tanh(hr.matmul(h, w) + b)
            loss = hr.reduce_mean(hr.square(h))
            step = hr.train.GradientDescentOptimizer(0.1).minimize(loss)
            init = hr.global_variables_initializer()
        images = rng.normal(size=(batch, sizes[0])).astype(np.float32)
        with hr.Session(target, graph) as session:
            session.run(init)
            run = session.make_callable([step, loss], [x])
            call = functools.partial(run, images)
            quickest({"step": call}, 50)
            cpu, steps = time.process_time(), 200 * rounds
            least = quickest({"step": call}, steps)["step"]
            cpu = (time.process_time() - cpu) / (steps + _WARM)
        found[str(batch)] = {"seconds": least, "cpu": cpu}
    return found


PARTS: dict[str, Callable[[Any, int], dict[str, Any]]] = {
    "lookups": lookups,
    "traffic": traffic,
    "whole": whole,
    "network": lambda cluster, rounds: network(cluster.target, "/job:ps", rounds),
}


def main(part: str, out: str, rounds: int) -> None:
    """Play a part in a job, or train in one process."""
    ranks = int(os.environ.get("OMPI_COMM_WORLD_SIZE", "1"))
    if ranks == 1:
        Path(out).write_text(json.dumps(network("", "", rounds)))
        return
    with hr.dist.Cluster(ps=ranks - 1) as cluster:
        if cluster.job_name == "ps":
            sent = cluster.node.transport
            before = time.process_time()
            cluster.serve()
            told = {"sent": sent.bytes_sent, "cpu": time.process_time() - before}
            Path(f"{out}.ps{cluster.task_index}").write_text(json.dumps(told))
            return
        Path(out).write_text(json.dumps(PARTS[part](cluster, rounds)))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
