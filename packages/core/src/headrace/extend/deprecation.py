"""Deprecation: names that work for some releases more, and warn what replaces them."""

from headrace.deprecation import (
    DEPRECATIONS,
    RELEASES,
    Deprecation,
    deprecated,
    deprecated_argument,
    deprecated_names,
)

__all__ = [
    "DEPRECATIONS",
    "RELEASES",
    "Deprecation",
    "deprecated",
    "deprecated_argument",
    "deprecated_names",
]
