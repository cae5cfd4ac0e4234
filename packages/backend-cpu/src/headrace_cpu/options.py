"""The options of the package's devices: what sessions may ask of them."""

from __future__ import annotations

from headrace.extend.devices import Around, DeviceOption, switch_option, whole_number_option
from headrace_cpu.settings import DENORMALS

ONEDNN_OPTION = switch_option("onednn", True, "use oneDNN where it is installed", shorthand=True)
THREADS_OPTION = whole_number_option(
    "threads", "how many threads the kernels of a step may use; None for what Config(threads=) says"
)
COMPILE_AFTER_OPTION = whole_number_option(
    "compile_after",
    "how often a step runs before kernels are compiled for it; None for what "
    "Config(compile_after=) says",
    least=0,
)


def flushes(denormals: str | None) -> bool:
    """Whether denormals are flushed, for a value of the option."""
    return (DENORMALS.read() if denormals is None else denormals) == "flush"


def _around(denormals: str | None) -> Around | None:
    if not flushes(denormals):
        return None
    # lazy: few sessions flush, and it looks at the processor
    from headrace_cpu.native.denormals import flush_or_refuse

    return flush_or_refuse()


DENORMALS_OPTION = DeviceOption(
    "denormals",
    None,
    lambda v: v in (None, "keep", "flush"),
    '"keep", "flush" or None',
    "what kernels do with denormals: keep them, or flush them to zero; None for what "
    "HEADRACE_DENORMALS says",
    shorthand=True,
    around=_around,
)
OPTIONS = (ONEDNN_OPTION, THREADS_OPTION, COMPILE_AFTER_OPTION, DENORMALS_OPTION)
