"""How the cost of a step grows: with batch, width and depth of a network, and with nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.controller import Progress, RunSettings
from benchmarks.peers import HEADRACE, NOT_INSTALLED, PEERS
from benchmarks.studies import Result
from benchmarks.studies.points import Cost, Point, PointError, measure
from benchmarks.table import figure, row

NETWORKS = {
    "batch": (1, 16, 128, 1024),
    "width": (64, 256, 1024, 2048),
    "depth": (1, 4, 16, 64),
}
NODES = (10, 100, 1000, 10_000)
# Ways to run the chains of nodes.
WAYS = (
    (HEADRACE, "Session.run"),
    (HEADRACE, "make_callable"),
    (HEADRACE, "plain executor"),
    ("tensorflow", "Session.run"),
)
TIMEOUT_S = 300.0

_COMMON = ("build ms", "first step ms", "step ms")


def run(settings: RunSettings, progress: Progress) -> Result:
    """Measure all points one after the other, each in a new process."""
    networks = [
        Point(HEADRACE, "Session.run", varied, value, settings.threads)
        for varied, values in NETWORKS.items()
        for value in values
    ]
    chains = [
        Point(peer, variant, "nodes", value, settings.threads)
        for peer, variant in WAYS
        for value in NODES
    ]
    head = ("varied", "value", "nodes", *_COMMON, "GFLOP/s", "memory MB")
    lines = ["Training a perceptron, 512 wide and 3 layers deep at batch 128 but for what varies:"]
    lines += ["", *_table(head, networks, _network_row, progress)]
    head = ("participant", "nodes", *_COMMON, "first step us / node", "step us / node", "memory MB")
    lines += ["", "A chain of mixed operations on 8x8 matrices:"]
    failed: list[Point] = []
    lines += ["", *_table(head, chains, _chain_row, progress, failed)]
    return Result(lines, not any(point.peer == HEADRACE for point in failed))


def _table(
    head: Sequence[str],
    points: Sequence[Point],
    cells: Callable[[Point, Cost], list[str]],
    progress: Progress,
    failed: list[Point] | None = None,
) -> list[str]:
    """Measure points and return the lines of their table."""
    lines = [row(head), row(["---"] + ["---:"] * (len(head) - 1))]
    for point in points:
        name = f"{PEERS[point.peer].title}, {point.variant}: {point.varied} {point.value}"
        progress(f"growth: {name}")
        trouble = ""
        if not PEERS[point.peer].installed():
            trouble = NOT_INSTALLED
        else:
            try:
                lines.append(row(cells(point, measure(point, TIMEOUT_S))))
            except PointError as error:
                trouble = f"failed: {error}"
                if failed is not None:
                    failed.append(point)
        if trouble:
            lines.append(row([name, trouble] + [""] * (len(head) - 2)))
    return lines


def _network_row(point: Point, cost: Cost) -> list[str]:
    """Return the cells of a network."""
    speed = figure(cost.flops / cost.step_s / 1e9)
    memory = figure(cost.memory_bytes / 1e6)
    return [point.varied, str(point.value), str(cost.nodes), *_times(cost), speed, memory]


def _chain_row(point: Point, cost: Cost) -> list[str]:
    """Return the cells of a chain."""
    name = f"{PEERS[point.peer].title}, {point.variant}"
    each = [figure(seconds / cost.nodes * 1e6) for seconds in (cost.first_s, cost.step_s)]
    return [name, str(cost.nodes), *_times(cost), *each, figure(cost.memory_bytes / 1e6)]


def _times(cost: Cost) -> list[str]:
    """Return the cells that both tables have."""
    return [figure(seconds * 1e3) for seconds in (cost.build_s, cost.first_s, cost.step_s)]
