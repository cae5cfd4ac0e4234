"""The memory of a GPU as programs use it: what their generated source calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.extend.state import VariableCell
from headrace_cpu.for_backends import ENVIRONMENT, Taken, promised
from headrace_cuda.program.platform import Platform


class DeviceMemory:
    """The memory of one GPU.

    Attributes:
        environment: What generated source uses, by name.
    """

    def __init__(self, platform: Platform, contiguous: Any) -> None:
        """Use a GPU.

        Args:
            platform: The GPU.
            contiguous: Returns an array with its elements in C order, itself where they are.
        """
        self.allocate = platform.allocate
        self.address = platform.address
        self.view = platform.view
        empty = platform.empty

        def solid(value: Any, shape: tuple[int, ...], dtype: Any) -> Any:
            promised(value, shape, dtype)
            return value if value.flags.c_contiguous else contiguous(value)

        def copied(value: Any) -> Any:
            return value.copy() if hasattr(value, "flags") else value

        def take(
            cells: Sequence[VariableCell], overwritten: Sequence[tuple[tuple[int, ...], Any] | None]
        ) -> Taken:
            return Taken(cells, overwritten, empty)

        own = {
            "at": platform.address,
            "solid": solid,
            "copied": copied,
            "empty": empty,
            "take": take,
        }
        self.environment: Mapping[str, Any] = {**ENVIRONMENT, **own}
