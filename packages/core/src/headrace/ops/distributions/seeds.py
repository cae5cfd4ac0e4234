"""Seeds of draws that must not be those of another draw with the same seed."""

from __future__ import annotations

import hashlib


def another_seed(seed: int | None, purpose: str) -> int | None:
    """Return a seed that follows from another one and a purpose; None for none."""
    if seed is None:
        return None
    digest = hashlib.md5(f"{seed}{purpose}".encode(), usedforsecurity=False).hexdigest()
    return int(digest[:8], 16) & 0x7FFFFFFF
