"""How a session runs its steps."""

from __future__ import annotations

import os
from dataclasses import field
from typing import Any

from headrace.errors import ConfigError
from headrace.records import dataclass
from headrace.runtime.options import Options
from headrace.settings import read_settings

_EXECUTORS = ("plan", "plain")
_SWITCHES = ("optimize", "verify", "deterministic", "check_numerics", "onednn", "profile")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Settings of one session.

    Attributes:
        optimize: Fold constants, merge equal nodes and simplify before a step is planned.
        verify: Check the step's graph after every pass; for tests of passes.
        executor: "plan", which compiles what a step does for the shapes that come; or "plain",
            which runs node by node, for debugging.
        threads: How many threads the kernels of a step may use; None for all cores of the process.
        deterministic: Give bitwise equal results in equal runs, or refuse the operation that
            cannot: what draws without a seed, reads a clock, or leaves the order of a sum to its
            device. What comes out of queues and Python functions is the program's affair.
        check_numerics: Stop a step at the first operation that makes a NaN, or an infinity of
            finite numbers. Steps then run node by node, as with ``executor="plain"`` and
            ``optimize=False``, so that no operation hides in another.
        onednn: Use oneDNN on the CPU where it is installed.
        compile_after: How often a step runs before kernels are generated and compiled for it;
            until then NumPy does their work. 0 compiles at once.
        trace: A file into which what steps do is written as a trace that Chrome (about:tracing)
            and Perfetto show; None for no trace. Sessions that share a Config share the trace.
        profile: Measure every kernel and operation, for ``Session.profile``.
    """

    optimize: bool = True
    verify: bool = False
    executor: str = field(default_factory=lambda: read_settings().executor)
    threads: int | None = None
    deterministic: bool = False
    check_numerics: bool = False
    onednn: bool = True
    compile_after: int = field(default_factory=lambda: read_settings().compile_after)
    trace: str | os.PathLike[str] | None = None
    profile: bool = False
    # A ``Recorder``, whose module is imported where one is asked for.
    _recorder: Any = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.executor not in _EXECUTORS:
            raise ConfigError(f"executor must be 'plan' or 'plain', got {self.executor!r}")
        if self.threads is not None and (type(self.threads) is not int or self.threads < 1):
            raise ConfigError(
                f"threads must be a positive integer, or None for all cores, got {self.threads!r}"
            )
        if type(self.compile_after) is not int or self.compile_after < 0:
            raise ConfigError(
                f"compile_after must be a number of steps, 0 or more, got {self.compile_after!r}"
            )
        for name in _SWITCHES:
            if not isinstance(getattr(self, name), bool):
                raise ConfigError(f"{name} must be True or False, got {getattr(self, name)!r}")
        if self.trace is not None and not _names_file(self.trace):
            raise ConfigError(
                f"trace must be the name of a file in a folder that exists, got {self.trace!r}"
            )
        if self.trace is not None or self.profile:
            from headrace.runtime.trace import Recorder

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
            deterministic=self.deterministic,
            check_numerics=self.check_numerics,
            onednn=self.onednn,
            compile_after=self.compile_after,
            recorder=self._recorder,
        )


def _names_file(path: object) -> bool:
    if not isinstance(path, str | os.PathLike) or not path:
        return False
    from pathlib import Path

    place = Path(os.fsdecode(path))
    return place.absolute().parent.is_dir() and not place.is_dir()
