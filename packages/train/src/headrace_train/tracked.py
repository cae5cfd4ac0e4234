"""What says itself which objects of a program it holds, for checkpoints of objects."""

from __future__ import annotations

from typing import Any


class Tracked:
    """An object that says which variables, and other objects, a checkpoint finds in it."""

    def _tracked(self) -> dict[str, Any]:
        """Return them, by the names of attributes."""
        raise NotImplementedError
