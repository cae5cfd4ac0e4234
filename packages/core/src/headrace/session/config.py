"""How a session runs its steps."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Settings of one session.

    Attributes:
        optimize: Fold constants and merge equal nodes before a step is planned.
        verify: Check the step's graph after every pass; for tests of passes.
        executor: "plain", which runs node by node.
    """

    optimize: bool = True
    verify: bool = False
    executor: str = "plain"

    def __post_init__(self) -> None:
        if self.executor != "plain":
            raise ConfigError(f"executor must be 'plain', got {self.executor!r}")
