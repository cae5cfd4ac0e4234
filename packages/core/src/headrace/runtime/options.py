"""Options: how steps are planned and run, as far as it concerns the runtime and its devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from headrace.records import dataclass

if TYPE_CHECKING:
    from headrace.runtime.profiling.trace import Recorder


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How steps are planned and run.

    Attributes:
        compiled: Whether devices may compile regions; otherwise nodes run one by one.
        optimize: Whether regions are simplified.
        verify: Whether graphs are checked after every pass.
        threads: How many threads compiled kernels may use, None for what the device chooses.
        inter_op_threads: How many nodes of a step may run at one time, None for as many as devices
            have threads.
        deterministic: Whether equal runs must give equal bits.
        check_numerics: Whether the first operation that makes a NaN or an infinity is an error.
        compile_after: How often a region runs before kernels are generated for it.
        compile_wait: Whether steps wait for kernels, rather than run plainly until they are there.
        repeated: Whether it is the body of a loop whose rounds are counted: kernels pay for less
            there, since a loop that is nothing but kernels can be run at one go.
        carried: Of the body of a loop whose iterations may overlap, how many of its first
            arguments are its first results in the iteration before.
        recorder: Records what steps do, None where nobody asks.
        compress_transfers: The dtype as which float32 goes between tasks, None for float32.
        consistency: How stale what changes variables may be, as ``Config(consistency=...)``.
        device_options: What the session gives of the options of each kind of devices.
        device_count: How many devices of a kind each task has, as ``Config(device_count=...)``.
        soft: Whether an operation runs elsewhere where the device that it asks for cannot run it.
    """

    compiled: bool = True
    optimize: bool = True
    verify: bool = False
    threads: int | None = None
    inter_op_threads: int | None = None
    deterministic: bool = False
    check_numerics: bool = False
    compile_after: int = 2
    compile_wait: bool = False
    repeated: bool = False
    carried: int = 0
    recorder: Recorder | None = None
    compress_transfers: str | None = None
    consistency: str = "relaxed"
    device_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)
    device_count: Mapping[str, int] = field(default_factory=dict, hash=False)
    soft: bool = False

    def of(self, kind: str) -> Mapping[str, Any]:
        """Return what the session gives of the options of a kind of devices."""
        return self.device_options.get(kind, _NONE)


_NONE: Mapping[str, Any] = {}


DEFAULT_OPTIONS = Options()
