"""What a workload is: its definition, its limit and goal, and who takes part in it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from benchmarks.peers import HEADRACE, PEERS


class Role(Enum):
    """In which capacity an entry takes part."""

    HEADRACE = "headrace"
    PEER = "peer"
    LIMIT = "limit"


@dataclass(frozen=True)
class Entry:
    """One row of a workload's table.

    Attributes:
        peer: key in ``PEERS``.
        variant: which of the peer's ways to run the workload; "" where there is one.
        module: module in the workload's package that builds it; "" for the one named as the
            peer.
        limit: True for the bare work that the machine must do in any case. It is measured and
            shown, and is nobody's competitor.
    """

    peer: str
    variant: str = ""
    module: str = ""
    limit: bool = False

    @property
    def role(self) -> Role:
        """The capacity in which this entry takes part."""
        if self.limit:
            return Role.LIMIT
        return Role.HEADRACE if self.peer == HEADRACE else Role.PEER

    @property
    def label(self) -> str:
        """The name of the row."""
        if self.limit:
            return f"limit: {self.variant}"
        title = PEERS[self.peer].title
        return f"{title}, {self.variant}" if self.variant else title


@dataclass(frozen=True)
class Workload:
    """A thing that all participants do, and by which they are compared.

    Attributes:
        name: what the command line calls it.
        package: the workload's own package, which holds the participants' modules.
        measured: what one figure of the table is the time of.
        entries: who takes part, in the order of the table.
        unit: unit of the times in the table: "us", "ms" or "s".
        memory: what the table's memory column is.
        participants: package that holds the participants' modules, where several workloads share
            them; "" for the workload's own package.
        rounds: timed rounds at most, for a workload whose rounds are long; None for as many as
            the run asks for.
        more_times: name of a further time in the samples -> head of its column.
        loss_tolerance: largest relative distance of a final loss from the median of all, None
            where there is no loss.
    """

    name: str
    package: str
    measured: str
    entries: tuple[Entry, ...]
    unit: str
    memory: str = "peak memory"
    loss_tolerance: float | None = None
    participants: str = ""
    rounds: int | None = None
    more_times: Mapping[str, str] = field(default_factory=dict)

    def rounds_of(self, asked: int) -> int:
        """Return the number of timed rounds in a run that asks for ``asked`` of them."""
        return asked if self.rounds is None else min(asked, self.rounds)

    def module_of(self, entry: Entry) -> str:
        """Return the full name of the module that builds an entry."""
        return f"{self.participants or self.package}.{entry.module or entry.peer}"


def all_workloads() -> dict[str, Workload]:
    """Return the workloads by name: each package in ``workloads`` has one as ``WORKLOAD``."""
    from benchmarks import workloads

    found: dict[str, Workload] = {}
    for info in pkgutil.iter_modules(workloads.__path__, f"{workloads.__name__}."):
        if info.ispkg:
            workload: Workload = importlib.import_module(info.name).WORKLOAD
            found[workload.name] = workload
    return found
