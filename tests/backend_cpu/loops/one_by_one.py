"""Loops whose rounds run one by one, to compare with."""

from __future__ import annotations

from headrace.runtime.control_flow.device_loops import LoopRunner
from headrace_cpu.loops.loop_call import LoopCall


def round_by_round(patch):
    """Let rounds run one by one, as long as a patch lasts."""
    patch.setattr(LoopRunner, "start", lambda self, arguments, count: None)
    patch.setattr(LoopCall, "_made", lambda self: None)
