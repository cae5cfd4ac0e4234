"""Settings: what claims and the program go by."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.runtime.options import Options
from headrace_cpu.native.threads import thread_count


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileSettings:
    """What claims and the program go by.

    Attributes:
        threads: How many threads kernels may use.
        deterministic: Whether equal runs must give equal bits.
        onednn: Whether oneDNN may be used where it is installed.
        compile_after: How often a program runs before kernels are generated for it.
        verify: Whether it is an error when a kernel cannot be generated; otherwise NumPy does its
            work, and a line tells of it.
    """

    threads: int = 1
    deterministic: bool = False
    onednn: bool = True
    compile_after: int = 2
    verify: bool = False

    @classmethod
    def of(cls, options: Options) -> CompileSettings:
        """Return the settings that follow from a session's options."""
        threads = options.threads if options.threads is not None else thread_count()
        # What is compiled later computes in another order, so equal bits need it from the start.
        after = 0 if options.deterministic else options.compile_after
        return cls(
            threads=threads,
            deterministic=options.deterministic,
            onednn=options.onednn,
            compile_after=after,
            verify=options.verify,
        )
