"""One trace of a step over all its ranks: what each recorded, on one clock, and what travelled.

A rank that runs a part of a traced step answers with a TRACE frame in place of DONE: what its
devices did, and the frames of the step in its flight record. The client knows how far the clocks
are apart, and gives all of it to the session's recorder.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, final

from headrace.extend.runtime import Flow, Recorder, Span, pack_events, unpack_events
from headrace_mpi.flight.record import Noted, key
from headrace_mpi.steps.clocks import Clocks
from headrace_mpi.steps.rendezvous import number_of
from headrace_mpi.transport.wire import Kind

if TYPE_CHECKING:
    from headrace_mpi.jobs import Layout
    from headrace_mpi.transport.transport import Transport

# What a trace shows as arrows; answers travel when the trace of their rank is packed already.
_SHOWN = (Kind.RUN, Kind.TENSOR, Kind.BUNDLE)


class RankPart(NamedTuple):
    """What a rank tells of its part of a step.

    Attributes:
        events: What its devices did, see ``pack_events``.
        frames: The frames of the step in its flight record.
        queued: When the part was asked for, and when it began.
    """

    events: Mapping[str, Any]
    frames: list[Noted]
    queued: tuple[int, int]


def pack(recorder: Recorder, transport: Transport, step: int, began: int) -> bytes:
    """Return the payload of a TRACE frame.

    Args:
        recorder: What recorded the part; it forgets what is packed.
        transport: Whose flight record has the frames.
        step: The step.
        began: When the part began to run, in nanoseconds.
    """
    frames = [noted for noted in transport.flight.frames(step) if noted.kind in _SHOWN]
    asked = next((noted.at for noted in frames if noted.kind is Kind.RUN), began)
    fields = {
        "events": pack_events(recorder.take()),
        "frames": [[*noted[:3], int(noted.kind), *noted[4:]] for noted in frames],
        "queued": [asked, began],
    }
    return json.dumps(fields, separators=(",", ":")).encode()


def unpack(payload: bytes) -> RankPart:
    """Read what ``pack`` made."""
    fields = json.loads(payload)
    frames = [
        Noted(at, bool(sent), peer, Kind(kind), *rest)
        for at, sent, peer, kind, *rest in fields["frames"]
    ]
    asked, began = fields["queued"]
    return RankPart(fields["events"], frames, (asked, began))


@final
class StepTracing:
    """Puts together the traces of the steps of one session."""

    def __init__(
        self, recorder: Recorder, transport: Transport, clocks: Clocks, layout: Layout
    ) -> None:
        """Trace nothing yet.

        Args:
            recorder: Gets what is found.
            transport: Of this rank, whose flight record keeps more frames from now on.
            clocks: Tell how far other ranks' clocks are ahead.
            layout: Which rank plays which task.
        """
        self._recorder = recorder
        self._transport = transport
        self._clocks = clocks
        self._layout = layout
        self._ahead: dict[int, int] = {transport.rank: 0}
        transport.flight.widen()

    def meet(self, ranks: Mapping[int, object]) -> None:
        """Measure the clocks of ranks, again where they are known: clocks drift."""
        for rank in ranks:
            self._ahead[rank] = self._clocks.ahead_of_ours(rank)

    def take_in(self, step: int, payloads: Mapping[int, bytes]) -> None:
        """Give the recorder what the ranks tell of a step.

        Args:
            step: The step.
            payloads: The payloads of their TRACE frames.
        """
        own = self._transport.rank
        parts = {rank: unpack(payload) for rank, payload in payloads.items()}
        frames = {rank: part.frames for rank, part in parts.items()}
        frames[own] = [n for n in self._transport.flight.frames(step) if n.kind in _SHOWN]
        flows = self._flows(frames)
        for rank, part in parts.items():
            ahead = self._ahead.get(rank, 0)
            asked, began = (at - ahead for at in part.queued)
            task = str(self._layout.task(rank))
            span = Span(f"step {number_of(step)} waits to run", task, asked, began)
            events, threads = unpack_events(part.events, ahead, rank + 1)
            self._recorder.take_in(events, threads, flows, [span])
            flows = []

    def _flows(self, frames: Mapping[int, list[Noted]]) -> list[Flow]:
        """Return the frames that both ends have noted, in this rank's time."""
        sent = {key(r, n): (r, n.at) for r, notes in frames.items() for n in notes if n.sent}
        found = []
        for rank, notes in frames.items():
            for noted in notes:
                start = None if noted.sent else sent.get(key(rank, noted))
                if start is None:
                    continue
                source, at = start
                found.append(
                    Flow(
                        _name(noted),
                        str(self._layout.task(source)),
                        at - self._ahead.get(source, 0),
                        str(self._layout.task(rank)),
                        noted.at - self._ahead.get(rank, 0),
                    )
                )
        return sorted(found, key=lambda flow: flow.sent)


def _name(noted: Noted) -> str:
    what = f"{noted.kind.name} of step {number_of(noted.step)}"
    if noted.kind is Kind.RUN:
        return what
    return f"{what}, edge {noted.edge}" + (f" ({noted.iteration})" if noted.iteration else "")
