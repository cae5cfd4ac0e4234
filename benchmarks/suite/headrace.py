"""Any case of the suite as a Headrace graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import headrace as hr
from benchmarks.headrace_session import open_session, stepper
from benchmarks.participant import Participant, Request, Sample, StepLoop
from benchmarks.suite import dataflow
from benchmarks.suite.case import Case, checksum
from benchmarks.suite.cases import all_cases

_PROFILED_STEPS = 10
_PLAIN_STEPS = 3


@dataclass(frozen=True)
class _Graph:
    """A step loop that can also tell what a step costs.

    Attributes:
        loop: the steps.
        case: what is run.
        graph: the graph of it.
        built: its tensors.
        threads: threads of the session.
    """

    loop: StepLoop
    case: Case
    graph: hr.Graph
    built: dataflow.Graph
    threads: int

    def round(self) -> Sample:
        """Run one timed round."""
        return self.loop.round()

    def loss(self) -> float | None:
        """Return the result by which all participants are compared."""
        return self.loop.loss()

    def costs(self) -> dict[str, Any]:
        """Return what a step moves and computes, and its slowest kernel, from another session."""
        config = hr.Config(threads=self.threads, profile=True)
        with hr.Session(graph=self.graph, config=config) as session:
            self.built.load(session, self.case.first_state())
            feed = _feed(self.built, self.case)
            for _ in range(_PROFILED_STEPS + _PLAIN_STEPS):
                session.run(self.built.step, feed)
            profile = session.profile()
            explained = session.explain(self.built.step, feed)
        # What ran less often belongs to the first values, or to the steps before the compiled ones.
        often = [row for row in profile.kernels if row.calls >= _PROFILED_STEPS]
        slowest = max(often or profile.kernels, key=lambda row: row.seconds)
        return {
            "bytes": explained.bytes,
            "flops": explained.flops,
            "slowest": f"{slowest.name}: {slowest.computes}".removesuffix(f": {slowest.name}"),
            "share": slowest.seconds / sum(row.seconds for row in often or profile.kernels),
        }


def build(request: Request) -> Participant:
    """Build the graph, a session on it, and load the first values."""
    case = all_cases()[request.workload]
    state = case.first_state()
    graph = hr.Graph()
    with graph.as_default():
        built = dataflow.build(hr, case, state)
        session = open_session(request.threads, request.variant)
    built.load(session, state)
    loop = StepLoop(
        stepper(session, request.variant, built.step, list(built.inputs.values())),
        [built.feeds(batch) for batch in case.feeds()],
        final_loss=lambda: checksum(session.run(built.result, _feed(built, case))),
        lead_in=2,
    )
    return _Graph(loop, case, graph, built, request.threads)


def _feed(built: dataflow.Graph, case: Case) -> dict[Any, Any]:
    """Return the feeds of the first step."""
    return {built.inputs[name]: value for name, value in case.feeds()[0].items()}
