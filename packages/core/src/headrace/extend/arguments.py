"""Reading arguments that Python values must be: numbers, lists and texts, or our error."""

from headrace.arguments import (
    items,
    mapping,
    nesting,
    real,
    text,
    whole,
)

__all__ = [
    "items",
    "mapping",
    "nesting",
    "real",
    "text",
    "whole",
]
