"""The settings of the package: what it reads from the environment, and what sessions may ask."""

from __future__ import annotations

from headrace.extend.devices import switch_option, whole_number_option
from headrace.extend.settings import Setting, missing_file, text, whole_number

CPU_DEVICES = Setting(
    "HEADRACE_CPU_DEVICES",
    whole_number(),
    1,
    "number of cpu devices that a process has (default 1)",
)
THREADS = Setting[int | None](
    "HEADRACE_THREADS",
    whole_number(),
    None,
    "number of threads that kernels use (default: the cores of the process)",
)
ONEDNN_LIBRARY = Setting[str | None](
    "HEADRACE_ONEDNN",
    text,
    None,
    "file of the oneDNN library (default the package onednn-cpu-gomp's)",
    fault=missing_file,
)
SETTINGS = (CPU_DEVICES, THREADS, ONEDNN_LIBRARY)

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
OPTIONS = (ONEDNN_OPTION, THREADS_OPTION, COMPILE_AFTER_OPTION)
