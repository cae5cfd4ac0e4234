"""Settings: what matchers and the program go by."""

from __future__ import annotations

from headrace.extend.devices import Options
from headrace.extend.records import dataclass
from headrace_cpu.native.threads import Share, thread_count
from headrace_cpu.options import (
    COMPILE_AFTER_OPTION,
    DENORMALS_OPTION,
    ONEDNN_OPTION,
    THREADS_OPTION,
    flushes,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileSettings:
    """What matchers and the program go by.

    Attributes:
        threads: How many threads kernels may use.
        deterministic: Whether equal runs must give equal bits.
        onednn: Whether oneDNN may be used where it is installed.
        compile_after: How often a program runs before kernels are generated for it.
        wait: Whether the step that is due for kernels waits for them.
        verify: Whether it is an error when a kernel cannot be generated; otherwise NumPy does its
            work, and a line tells of it.
        flush: Whether the threads of kernels flush denormals to zero.
        keen: Whether kernels compute also what NumPy does as fast: what is nothing but kernels can
            be run many times at one go.
    """

    threads: int = 1
    deterministic: bool = False
    onednn: bool = True
    compile_after: int = 2
    wait: bool = False
    verify: bool = False
    flush: bool = False
    keen: bool = False

    @classmethod
    def of(cls, options: Options) -> CompileSettings:
        """Return the settings that follow from a session's options."""
        given = options.of("cpu")
        threads = THREADS_OPTION.read(given) or options.threads or thread_count()
        asked = COMPILE_AFTER_OPTION.read(given)
        after = options.compile_after if asked is None else asked
        # What is compiled later computes in another order, so equal bits need it from the start.
        after = 0 if options.deterministic else after
        return cls(
            threads=threads,
            deterministic=options.deterministic,
            onednn=ONEDNN_OPTION.read(given),
            compile_after=after,
            # Where it matters which step is the first with kernels, and where they may be wrong.
            wait=options.compile_wait or options.verify or not after,
            verify=options.verify,
            flush=flushes(DENORMALS_OPTION.read(given)),
            keen=options.repeated,
        )

    def share(self) -> Share:
        """Return what takes a share of the threads for a step."""
        if not self.flush:
            return Share(self.threads, fixed=self.deterministic)
        # lazy: few sessions flush
        from headrace_cpu.native.denormals import FlushingShare

        return FlushingShare(self.threads, fixed=self.deterministic)
