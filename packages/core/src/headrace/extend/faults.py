"""Faults that tests inject into a job, by the setting ``HEADRACE_FAULTS``.

A package that can fail in an interesting place passes a ``fault_point`` there; one that starts
processes says how faults name them.
"""

from headrace.runtime.fault_points import (
    Fault,
    InjectedFaultError,
    fault_point,
    has_faults,
    is_muted,
    name_process,
    parse_faults,
)

__all__ = [
    "Fault",
    "InjectedFaultError",
    "fault_point",
    "has_faults",
    "is_muted",
    "name_process",
    "parse_faults",
]
