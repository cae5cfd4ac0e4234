"""Options: how steps are planned and run, as far as it concerns the runtime and its devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.records import dataclass

if TYPE_CHECKING:
    from headrace.runtime.trace import Recorder


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How steps are planned and run.

    Attributes:
        compiled: Whether devices may compile segments; otherwise nodes run one by one.
        optimize: Whether segments are simplified.
        verify: Whether graphs are checked after every pass.
        threads: How many threads compiled kernels may use, None for what the device chooses.
        deterministic: Whether equal runs must give equal bits.
        check_numerics: Whether the first operation that makes a NaN or an infinity is an error.
        onednn: Whether the cpu device may use oneDNN where it is installed.
        compile_after: How often a segment runs before kernels are generated for it.
        recorder: Records what steps do, None where nobody asks.
    """

    compiled: bool = True
    optimize: bool = True
    verify: bool = False
    threads: int | None = None
    deterministic: bool = False
    check_numerics: bool = False
    onednn: bool = True
    compile_after: int = 2
    recorder: Recorder | None = None


DEFAULT_OPTIONS = Options()
