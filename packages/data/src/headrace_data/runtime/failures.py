"""Errors that stand in the place of elements, and are saved with them."""

from __future__ import annotations

from typing import Any

from headrace import errors
from headrace.errors import HeadraceError, UnknownError


def save_failure(error: Exception) -> dict[str, Any]:
    """Return what to restore of an error: its class and what it says."""
    kind = type(error)
    own = isinstance(error, HeadraceError) and getattr(errors, kind.__name__, None) is kind
    name = kind.__name__ if own else UnknownError.__name__
    return {"error": name, "text": str(error)}


def load_failure(saved: dict[str, Any]) -> HeadraceError:
    """Return an error that was saved."""
    kind: type[HeadraceError] = getattr(errors, saved["error"])
    return errors.located(kind, [saved["text"]])
