"""Registries: what plugins fill, each one of its own, and the host joins.

Each plugin fills a registry of its own in its hook, so that a hook that fails has added nothing.
The host joins the registries of all plugins in one, which refuses who takes what another package
owns.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from headrace.errors import PluginError
from headrace.plugins.ownership import (
    PROGRAM,
    Claim,
    Contest,
    Provider,
    Replacement,
    judge,
)


class Offer(Protocol):
    """What registries hold: something of a place, which may ask to replace another one."""

    @property
    def where(self) -> str:
        """Module and line."""

    @property
    def override(self) -> str:
        """Why it replaces another; empty where it does not."""


T = TypeVar("T", bound=Offer)
Given = Sequence[tuple[Provider, "Registry[Any]"]]
# From a key of a registry to the import packages that own what it names, the strongest first.
Owners = Callable[[Any], Sequence[str]]


class Registry(Generic[T]):
    """Offers by key; that of a plugin, or the joined one of all plugins.

    Attributes:
        offers: What is offered by key; in a joined registry only what is used, best first.
        replacements: In a joined registry, what plugins replace on request.
    """

    # The hook in which plugins add to it.
    hook: ClassVar[str] = ""

    def __init__(self) -> None:
        self.offers: dict[Any, list[T]] = {}
        self._given: Given = ()
        self._closed = ""
        self.replacements: list[Replacement] = []

    # -- what subclasses say

    def _thing(self, key: Any) -> str:
        """Return what messages call the thing that a key names."""
        raise NotImplementedError

    def _claim(self, provider: Provider, offer: T) -> Claim:
        """Return the claim that an offer makes."""
        return Claim(provider, offer.where, offer.override)

    def _declared(self, key: Any) -> Claim | None:
        """Return the claim of who declared a thing without offering it here, None for most."""
        del key
        return None

    def _ranked(self, contest: Contest, offers: Sequence[tuple[Claim, T]]) -> list[T]:
        """Return the offers that are used, best first; of most things there can be one only."""
        first = min(offers, key=lambda made: contest.rank(made[0]))
        return [first[1]]

    def _spread(self, joined: dict[Any, list[T]], given: Given) -> None:
        """Complete what is joined, before anyone sees it; most registries have nothing to add."""

    # -- filling

    def _put(self, key: Any, offer: T) -> None:
        self._check_open()
        self.offers.setdefault(key, []).append(offer)

    def _check_open(self) -> None:
        if self._closed:
            raise PluginError(self._closed)

    def close(self) -> Self:
        """Refuse further offers: those that come after the hook would have no effect."""
        self._closed = f"a registry is filled in the hook {self.hook} only, and that has returned"
        return self

    def join(self, given: Given, owners: Owners) -> dict[Provider, str]:
        """Become what all the given registries are together.

        Args:
            given: The closed registry of each provider.
            owners: Who owns what a key names.

        Returns:
            For each provider that is refused the reason; nothing is joined where there is any.
        """
        found: dict[Hashable, list[tuple[Provider, T]]] = {}
        for provider, registry in given:
            for key, offers in registry.offers.items():
                found.setdefault(key, []).extend((provider, offer) for offer in offers)
        joined: dict[Any, list[T]] = {}
        contested: list[tuple[Any, Contest, list[tuple[Claim, T]]]] = []
        for key, several in found.items():
            joined[key] = [offer for _, offer in several]
            ours = all(provider.own for provider, _ in several)
            declared = None if ours else self._declared(key)
            if declared is not None or len({provider for provider, _ in several}) > 1:
                made = [(self._claim(provider, offer), offer) for provider, offer in several]
                claims = [claim for claim, _ in made]
                claims += [] if declared is None else [declared]
                contest = Contest(self._thing(key), key, owners(key), claims)
                contested.append((key, contest, made))
        refused, replacements = judge(contest for _, contest, _ in contested)
        if refused:
            return refused
        for key, contest, made in contested:
            joined[key] = self._ranked(contest, made)
        self._spread(joined, given)
        # At once: steps of other threads may be looking for something in them.
        self.offers, self._given, self.replacements = joined, given, replacements
        return {}

    def provider(self, key: Any, offer: T) -> Provider:
        """Return who offers something in a joined registry."""
        for provider, registry in self._given:
            if any(offer is other for other in registry.offers.get(key, ())):
                return provider
        return PROGRAM
