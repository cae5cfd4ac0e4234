"""Records of what passes did, for reports."""

from __future__ import annotations

from headrace.graph.creation_site import Site
from headrace.records import dataclass


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One application of a rule, or of a plugin's pass.

    Attributes:
        rule: The name of the rule or pass.
        reason: Why the result is the same.
        ops: The names of the operations that are gone; of a rule, the first was replaced.
        site: The user's line that made the first.
        plugin: The plugin whose rule or pass it is, empty for core's.
    """

    rule: str
    reason: str
    ops: tuple[str, ...]
    site: Site
    plugin: str = ""

    def __str__(self) -> str:
        more = f" and {len(self.ops) - 1} more" if len(self.ops) > 1 else ""
        first = self.ops[0] if self.ops else "nothing is gone"
        return f"{self.rule}: {first}{more} ({self.reason}) at {self.site}"
