"""The settings of the package: what it reads from the environment."""

from __future__ import annotations

from headrace.extend.settings import Setting, size

MEMORY_LIMIT = Setting[int | None](
    "HEADRACE_CUDA_MEMORY_LIMIT",
    size,
    None,
    "memory that a process takes of each GPU at most, as in 8GiB (default: what arrays need)",
)
SETTINGS = (MEMORY_LIMIT,)
