"""The settings of the package: what it reads from the environment."""

from __future__ import annotations

from headrace.extend.settings import Setting, seconds, switch, text, whole_number

START_TIMEOUT = Setting(
    "HEADRACE_START_TIMEOUT",
    seconds,
    60.0,
    "seconds within which all ranks of a cluster must have started (default 60)",
)
SLOW_AFTER = Setting(
    "HEADRACE_SLOW_AFTER",
    seconds,
    5.0,
    "seconds without a sign of life after which a rank is reported as slow (default 5)",
)
LOST_AFTER = Setting(
    "HEADRACE_LOST_AFTER",
    seconds,
    60.0,
    "seconds without a sign of life after which a rank is lost, and the job ends (default 60)",
)
COLLECTIVE_TIMEOUT = Setting(
    "HEADRACE_COLLECTIVE_TIMEOUT",
    seconds,
    300.0,
    "seconds that a collective waits without a sign of life of other ranks (default 300)",
)
READ_MEMORY = Setting(
    "HEADRACE_READ_MEMORY",
    switch,
    True,
    "0 lets collectives of ranks on one host send large values as others do (default 1: ranks read "
    "them from each other's memory where the system allows it)",
)
SHARE_MEMORY = Setting(
    "HEADRACE_SHARE_MEMORY",
    switch,
    True,
    "0 lets ranks of one host talk by MPI alone (default 1: through memory that they share, where "
    "the system allows it)",
)
STALL_AFTER = Setting(
    "HEADRACE_STALL_AFTER",
    seconds,
    60.0,
    "seconds after which a step over ranks that still runs is reported, with what it waits for "
    "(default 60)",
)
FLIGHT = Setting(
    "HEADRACE_FLIGHT",
    text,
    "",
    "folder of flight records, which are then written for every step that fails (default "
    "headrace-flight among temporary files, for steps that time out and ranks that are lost)",
)

# What ``python -m headrace run`` tells the ranks that it starts.
LAUNCH = Setting(
    "HEADRACE_LAUNCH",
    text,
    "",
    "set by `python -m headrace run`: begins what ranks tell the launcher",
)
JOBS = Setting(
    "HEADRACE_JOBS",
    text,
    "",
    "set by `python -m headrace run`: the jobs of clusters that name none, as in ps=1,worker=3",
)
MIN_WORKERS = Setting(
    "HEADRACE_MIN_WORKERS",
    whole_number(least=0),
    0,
    "set by `python -m headrace run --min-workers`: with how few workers a cluster that goes on "
    "without lost ones does so (default 0: as long as one is left that can be the chief)",
)
RESTARTS = Setting(
    "HEADRACE_RESTARTS",
    whole_number(least=0),
    0,
    "set by `python -m headrace run`: how often it has started the program anew",
)
SETTINGS = (
    *(START_TIMEOUT, SLOW_AFTER, LOST_AFTER, STALL_AFTER, FLIGHT, COLLECTIVE_TIMEOUT, READ_MEMORY),
    SHARE_MEMORY,
    *(LAUNCH, JOBS, MIN_WORKERS, RESTARTS),
)
