"""The settings of the package: what it reads from the environment."""

from __future__ import annotations

from headrace.extend.settings import Setting, choice, missing_file, text, whole_number

CPU_DEVICES = Setting(
    "HEADRACE_CPU_DEVICES",
    whole_number(),
    1,
    "number of cpu devices that a process has unless hr.Config says (default 1)",
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
DENORMALS = Setting(
    "HEADRACE_DENORMALS",
    choice("keep", "flush"),
    "keep",
    "keep or flush: what kernels do with denormals unless hr.Config says (default keep)",
)
SETTINGS = (CPU_DEVICES, THREADS, ONEDNN_LIBRARY, DENORMALS)
