"""The registry of translations of TensorFlow's ops."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headrace.errors import PluginError
from headrace.plugins.registries.registry import Registry
from headrace.plugins.translations import Translation


class TranslationRegistry(Registry[Translation]):
    """Translations by the type of the op."""

    hook = "headrace_register_translations"

    def add(self, table: Iterable[Translation]) -> None:
        """Add a table of translations.

        Raises:
            PluginError: if an op has one already; names both places.
        """
        self._check_open()
        merged = dict(self.offers)
        for row in table:
            known = merged.get(row.op)
            if known:
                raise PluginError(
                    f"two translations of {row.op}: at {known[0].where} and at {row.where}; remove "
                    "one"
                )
            merged[row.op] = [row]
        self.offers = merged

    def _thing(self, key: str) -> str:
        return f"the translation of TensorFlow's op {key}"

    def get(self, op: str) -> Translation | None:
        """Return the translation of an op, or None."""
        found = self.offers.get(op)
        return found[0] if found else None

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self.offers))
