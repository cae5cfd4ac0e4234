"""Translating operations of graphs that TensorFlow wrote, one row for each op."""

from headrace.plugins.registries.translations import TranslationRegistry
from headrace.plugins.translations import (
    ForeignNode,
    Translation,
    TranslationTable,
)

__all__ = [
    "ForeignNode",
    "Translation",
    "TranslationRegistry",
    "TranslationTable",
]
