"""How a session runs its steps."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from headrace.errors import ConfigError, shown
from headrace.placement.costs import CostModel, as_costs
from headrace.placement.device_counts import checked_counts
from headrace.placement.policy import PlacementPolicy, as_policy
from headrace.plugins.host import host
from headrace.records import dataclass
from headrace.runtime.concurrency.step_order import RELAXED, bound_of
from headrace.runtime.devices.options import checked
from headrace.runtime.options import Options
from headrace.settings import CHECK_RACES, COMPILE_AFTER, COMPILE_WAIT, EXECUTOR, WAIT_REPORT

_EXECUTORS = ("plan", "plain")
_SWITCHES = (
    *("optimize", "verify", "deterministic", "check_numerics", "check_races", "compile_wait"),
    *("profile", "allow_soft_placement", "log_device_placement"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Settings of one session.

    Attributes:
        optimize: Fold constants, merge equal nodes and simplify before a step is planned.
        verify: Check the step's graph after every pass; for tests of passes.
        executor: "plan", which compiles what a step does for the shapes that come; or "plain",
            which runs node by node, for debugging.
        threads: How many threads the kernels of a step may use; None for all cores of the process.
        inter_op_threads: How many operations of a step may run at one time where they do not wait
            for each other: kernels that take long and leave cores to others, and Python functions.
            1 runs one after the other. None for as many kernels as ``threads``, and any number of
            Python functions, which may wait.
        deterministic: Give bitwise equal results in equal runs, or refuse the operation that
            cannot: what draws without a seed, reads a clock, or leaves the order of a sum to its
            device. What comes out of queues and Python functions is the program's affair.
        check_numerics: Stop a step at the first operation that makes a NaN, or an infinity of
            finite numbers. Steps then run node by node, as with ``executor="plain"`` and
            ``optimize=False``, so that no operation hides in another.
        check_races: Refuse a step that uses a variable or a table twice in no order, where one of
            both changes it; says which lines of the program. Decided once, when it is planned.
        compile_after: How often a step runs before kernels are generated and compiled for it;
            until then NumPy does their work. 0 compiles at once, before the first.
        compile_wait: Whether the step that is due for kernels waits for them. Otherwise they are
            compiled behind the steps, which run plainly until all are there: which step is the
            first with kernels, whose results may differ in the last bits, is left to chance.
            Steps wait, too, with ``deterministic``, ``verify`` or ``compile_after=0``. Closing the
            session waits for kernels that are being compiled.
        wait_report: How many seconds a step waits to take something from a queue before it warns,
            naming the queue and who could fill it; where nobody could, because no other thread
            runs, the step ends with ``errors.FailedPreconditionError``.
        trace: A file into which what steps do is written as a trace that Chrome (about:tracing)
            and Perfetto show; None for no trace. Sessions that share a Config share the trace.
        profile: Measure every kernel and operation, for ``Session.profile``.
        timeout: How many seconds a step may take; one that still waits then, for a queue or
            another task, ends with ``errors.DeadlineExceededError``. None for as long as it wants.
        allow_soft_placement: Run an operation elsewhere whose device is not there, or has no
            kernel for it, rather than refuse it.
        log_device_placement: Print to the standard error where the operations of each new step
            run.
        placement: Where operations run, over what the program asks for: an
            ``hr.PlacementPolicy``, or the name of a file of TOML with one.
        placement_costs: An ``hr.CostModel``, by which devices are chosen for what the program and
            the policy leave open; None for the fastest kind of device that has kernels.
        compress_transfers: "bfloat16" to send float32 between tasks as bfloat16, in half the bytes:
            the lower 16 bits of each element are dropped, and are zero on arrival. Feeds and
            fetches stay as they are. All ranks must ask for the same. None to send all bits.
        consistency: How far steps that change variables may be behind each other, where several
            sessions or threads run some: "relaxed" runs all as they come; with "bounded:k", no more
            than k such steps of others end between the beginning and the end of one, so that no
            gradient is more than k updates old; "sequential" runs steps that change variables
            apart from all that read or change some. Steps wait for that. All sessions that change
            the variables must ask for the same. Variables of a step's own, in the collection
            ``LOCAL_VARIABLES``, do not count.
        device_count: How many devices of a kind each task has, as in ``{"cpu": 2, "gpu": 0}``. Of
            CPUs, which are all the processor of the process, there are as many as are asked for;
            of others at most as many, the first ones: 0 hides them. Kinds that are left out have
            all that there are, which is one CPU.
        device_options: Options of kinds of devices, as in ``{"cpu": {"threads": 2}}``. Whoever
            provides a kind says which it has, and which may be given to ``Config`` by name, too.
    """

    optimize: bool = True
    verify: bool = False
    executor: str = "plan"
    threads: int | None = None
    inter_op_threads: int | None = None
    deterministic: bool = False
    check_numerics: bool = False
    check_races: bool = False
    compile_after: int = 2
    compile_wait: bool = False
    wait_report: float = 60.0
    trace: str | os.PathLike[str] | None = None
    profile: bool = False
    timeout: float | None = None
    allow_soft_placement: bool = False
    log_device_placement: bool = False
    placement: PlacementPolicy | None = None
    placement_costs: CostModel | None = None
    compress_transfers: str | None = None
    consistency: str = RELAXED
    device_count: Mapping[str, int] = field(default_factory=dict, hash=False)
    device_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)
    # A ``Recorder``, whose module is imported where one is asked for.
    _recorder: Any = field(default=None, init=False, repr=False, compare=False)

    def __init__(
        self,
        *,
        optimize: bool = True,
        verify: bool = False,
        executor: str | None = None,
        threads: int | None = None,
        inter_op_threads: int | None = None,
        deterministic: bool = False,
        check_numerics: bool = False,
        check_races: bool | None = None,
        compile_after: int | None = None,
        compile_wait: bool | None = None,
        wait_report: float | None = None,
        trace: str | os.PathLike[str] | None = None,
        profile: bool = False,
        timeout: float | None = None,
        allow_soft_placement: bool = False,
        log_device_placement: bool = False,
        placement: PlacementPolicy | str | os.PathLike[str] | None = None,
        placement_costs: CostModel | None = None,
        compress_transfers: str | None = None,
        consistency: str = RELAXED,
        device_count: Mapping[str, int] | None = None,
        device_options: Mapping[str, Mapping[str, Any]] | None = None,
        **shorthands: Any,
    ) -> None:
        """Take settings, each as the attribute of its name says.

        Args:
            optimize: As the attribute.
            verify: As the attribute.
            executor: As the attribute; None for what ``HEADRACE_EXECUTOR`` says, else "plan".
            threads: As the attribute.
            inter_op_threads: As the attribute.
            deterministic: As the attribute.
            check_numerics: As the attribute.
            check_races: As the attribute; None for what ``HEADRACE_CHECK_RACES`` says, else False.
            compile_after: As the attribute; None for what ``HEADRACE_COMPILE_AFTER`` says, else 2.
            compile_wait: As the attribute; None for what ``HEADRACE_COMPILE_WAIT`` says.
            wait_report: As the attribute; None for what ``HEADRACE_WAIT_REPORT`` says, else 60.
            trace: As the attribute.
            profile: As the attribute.
            timeout: As the attribute.
            allow_soft_placement: As the attribute.
            log_device_placement: As the attribute.
            placement: As the attribute.
            placement_costs: As the attribute.
            compress_transfers: As the attribute.
            consistency: As the attribute.
            device_count: As the attribute.
            device_options: As the attribute.
            **shorthands: Options of devices that may be given by name.

        Raises:
            ConfigError: if there is no such setting or option, or it does not take the value.
        """
        given: dict[str, Any] = {
            "optimize": optimize,
            "verify": verify,
            "executor": EXECUTOR.read() if executor is None else executor,
            "threads": threads,
            "inter_op_threads": inter_op_threads,
            "deterministic": deterministic,
            "check_numerics": check_numerics,
            "check_races": CHECK_RACES.read() if check_races is None else check_races,
            "compile_after": COMPILE_AFTER.read() if compile_after is None else compile_after,
            "compile_wait": COMPILE_WAIT.read() if compile_wait is None else compile_wait,
            "wait_report": WAIT_REPORT.read() if wait_report is None else wait_report,
            "trace": trace,
            "profile": profile,
            "timeout": timeout,
            "allow_soft_placement": allow_soft_placement,
            "log_device_placement": log_device_placement,
            "placement": as_policy(placement),
            "placement_costs": as_costs(placement_costs),
            # A dtype counts as its name.
            "compress_transfers": getattr(compress_transfers, "name", compress_transfers),
            "consistency": consistency,
            "device_count": {},
            "device_options": {},
            "_recorder": None,
        }
        if device_options or shorthands:
            kinds = host().devices
            given["device_options"] = checked(
                device_options or {}, shorthands, kinds, [n for n in given if n[0] != "_"]
            )
        if device_count is not None:
            given["device_count"] = checked_counts(device_count)
        for name, value in given.items():
            object.__setattr__(self, name, value)
        self._check()

    def __getattr__(self, name: str) -> Any:
        """Return an option of devices that may be given by name, as the session has it."""
        if not name.startswith("_"):
            for kind in host().devices:
                for option in kind.options:
                    if option.shorthand and option.name == name:
                        return option.read(self.device_options.get(kind.name, {}))
        raise AttributeError(f"Config has no setting {name!r}")

    def _check(self) -> None:
        if self.executor not in _EXECUTORS:
            raise ConfigError(f"executor must be 'plan' or 'plain', got {shown(self.executor)}")
        if self.compress_transfers not in (None, "bfloat16"):
            raise ConfigError(
                "compress_transfers must be 'bfloat16' or None, got "
                f"{shown(self.compress_transfers)}"
            )
        bound_of(self.consistency)
        for name, default in (("threads", "all cores"), ("inter_op_threads", "as many as threads")):
            count = getattr(self, name)
            if count is not None and (type(count) is not int or count < 1):
                raise ConfigError(
                    f"{name} must be a positive integer, or None for {default}, got {shown(count)}"
                )
        if type(self.compile_after) is not int or self.compile_after < 0:
            raise ConfigError(
                "compile_after must be a number of steps, 0 or more, got "
                f"{shown(self.compile_after)}"
            )
        if self.timeout is not None and (
            type(self.timeout) not in (int, float) or not 0 < self.timeout < float("inf")
        ):
            raise ConfigError(
                f"timeout must be a number of seconds above 0, or None, got {shown(self.timeout)}"
            )
        seconds: Any = self.wait_report
        if type(seconds) not in (int, float) or not seconds > 0:
            raise ConfigError(
                f"wait_report must be a number of seconds above 0, got {shown(self.wait_report)}"
            )
        for name in _SWITCHES:
            if not isinstance(getattr(self, name), bool):
                raise ConfigError(f"{name} must be True or False, got {shown(getattr(self, name))}")
        if self.trace is not None and not _names_file(self.trace):
            raise ConfigError(
                f"trace must be the name of a file in a folder that exists, got {shown(self.trace)}"
            )
        if self.trace is not None or self.profile:
            # lazy: recording is for sessions that ask for it
            from headrace.runtime.profiling.trace import Recorder

            object.__setattr__(self, "_recorder", Recorder(self.trace))

    @property
    def options(self) -> Options:
        """What the runtime needs of these settings."""
        # What is fused or folded cannot be looked at by itself.
        apart = self.check_numerics
        return Options(
            compiled=self.executor == "plan" and not apart,
            optimize=self.optimize and not apart,
            verify=self.verify,
            threads=self.threads,
            inter_op_threads=self.inter_op_threads,
            deterministic=self.deterministic,
            check_numerics=self.check_numerics,
            compile_after=self.compile_after,
            compile_wait=self.compile_wait,
            recorder=self._recorder,
            compress_transfers=self.compress_transfers,
            consistency=self.consistency,
            device_options=self.device_options,
            device_count=self.device_count,
            soft=self.allow_soft_placement,
        )


def _names_file(path: object) -> bool:
    if not isinstance(path, str | os.PathLike) or not path:
        return False
    from pathlib import Path

    place = Path(os.fsdecode(path))
    try:
        return place.absolute().parent.is_dir() and not place.is_dir()
    except (OSError, ValueError):
        # Too long, or with what no name has.
        return False
