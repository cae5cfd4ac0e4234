"""Settings: what matchers and programs on a GPU go by."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace.extend.devices import Options
from headrace_cpu.for_backends import CompileSettings, Share
from headrace_cuda.options import PRECISION_OPTION
from headrace_cuda.program.platform import Platform


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaSettings(CompileSettings):
    """What matchers and programs on a GPU go by.

    Attributes:
        platform: The GPU.
        precision: With which bits of float32 matrices are multiplied and convolved: "highest" for
            all, "tf32" for 10 bits of the fraction.
    """

    platform: Platform = field(kw_only=True)
    precision: str = "highest"

    @classmethod
    def on(cls, platform: Platform, options: Options) -> CudaSettings:
        """Return the settings that follow from a session's options."""
        after = 0 if options.deterministic else options.compile_after
        return cls(
            platform=platform,
            precision=PRECISION_OPTION.read(options.of("cuda")),
            deterministic=options.deterministic,
            compile_after=after,
            wait=True,
            verify=options.verify,
            # What is not in a kernel ends a graph.
            keen=True,
        )

    def share(self) -> Share:
        """Return what takes no share of the host's threads."""
        return _NoShare(1)


class _NoShare(Share):
    """A step on a GPU leaves the threads of the host to others."""

    def enter(self) -> int:
        return 1

    def leave(self) -> None:
        return
