"""Ownership: who may provide what, and who is refused where two want to.

Whoever declared an op, a public name, a kind of devices or a scheme of session targets owns it.
Where two packages offer the same thing, the one that owns it has it, and the other must ask to
replace it, with ``override="the reason"``. Without that it is refused, whatever the names of the
two are. Between two that own nothing of it the first by name has it. Headrace's own packages own
together what core declares.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from headrace.errors import shown
from headrace.records import dataclass

if TYPE_CHECKING:
    from headrace.plugins.entry_points import Entry

CORE_PACKAGE = "headrace"

# The import packages of Headrace itself.
OWN_PACKAGES = frozenset(
    {
        CORE_PACKAGE,
        "headrace_autodiff",
        "headrace_cpu",
        "headrace_cuda",
        "headrace_data",
        "headrace_io",
        "headrace_mpi",
        "headrace_serve",
        "headrace_tensorflow",
        "headrace_testing",
        "headrace_train",
    }
)


def package_of(module: str) -> str:
    """Return the import package of a module, or of module and line, as in ``"headrace_cpu"``."""
    return module.partition(":")[0].partition(".")[0]


class Distribution:
    """What was installed, read when messages want to name it: that takes a millisecond."""

    __slots__ = ("_entry", "_name")

    def __init__(self, entry: Entry) -> None:
        self._entry = entry
        self._name = ""

    def __str__(self) -> str:
        """Return its name and version, "?" where the entry point has none."""
        if not self._name:
            dist = getattr(self._entry, "dist", None)
            metadata = None if dist is None else dist.metadata
            self._name = "?" if metadata is None else f"{metadata['Name']} {metadata['Version']}"
        return self._name


def line_of_function(function: object) -> str:
    """Return module and line of a function, as in ``"headrace_cube:21"``; "?" for others."""
    module = getattr(function, "__module__", None) or "?"
    code = getattr(function, "__code__", None)
    return f"{module}:{code.co_firstlineno}" if code is not None else str(module)


@dataclass(frozen=True, slots=True)
class Provider:
    """Who offers something.

    Attributes:
        name: The name of the plugin's entry point; empty for core and for the program.
        package: Its import package.
        source: What to install, with the version.
    """

    name: str
    package: str
    source: str | Distribution = field(default="", compare=False)

    @property
    def distribution(self) -> str:
        """What to install, with the version, for messages."""
        return str(self.source)

    @property
    def project(self) -> str:
        """What to install, as in ``"headrace-backend-cpu"``; read when asked, as the version."""
        return CORE_PROJECT if self is CORE else self.distribution.partition(" ")[0]

    @property
    def own(self) -> bool:
        """Whether it is one of Headrace's packages."""
        return self.package in OWN_PACKAGES

    def __str__(self) -> str:
        """Return what messages call it."""
        if self.name:
            return f"plugin {self.name!r}"
        return self.distribution or "the program"


CORE = Provider("", CORE_PACKAGE, "core")
CORE_PROJECT = "headrace-core"
# What a program registers by itself, without a plugin.
PROGRAM = Provider("", "")


@dataclass(frozen=True, slots=True)
class Claim:
    """One provider's offer of a thing.

    Attributes:
        provider: Who offers it.
        where: Module and line of what is offered.
        override: Why it replaces what others offer; empty where it does not ask to.
        priority: Of kernels, the higher is asked first.
        dtypes: Of kernels, what they take; None for all.
        final: Nothing may replace it, not even on request; says why.
    """

    provider: Provider
    where: str
    override: str = ""
    priority: int = 0
    dtypes: frozenset[str] | None = None
    final: str = ""

    def replaces(self, other: Claim) -> bool:
        """Whether it would be used in the place of ``other``, for some dtypes."""
        apart = self.dtypes is not None and other.dtypes is not None
        if apart and not (self.dtypes or frozenset()) & (other.dtypes or frozenset()):
            return False
        return bool(self.override) or self.priority >= other.priority


@dataclass(frozen=True, slots=True)
class Contest:
    """A thing that several offer.

    Attributes:
        thing: What it is, as in ``"the kernel for Sin on cpu"``.
        key: What its registry finds it by.
        owners: The import packages that own it, the strongest first.
        claims: The offers.
    """

    thing: str
    key: Any
    owners: Sequence[str]
    claims: Sequence[Claim]

    def standing(self, provider: Provider) -> int:
        """Return a provider's place among those who have a right to the thing, 0 for the first."""
        for place, owner in enumerate(self.owners):
            if owner == provider.package or (owner == CORE_PACKAGE and provider.own):
                return place
        return len(self.owners)

    def rank(self, claim: Claim) -> tuple[bool, int, str]:
        """Return what claims are sorted by, where there is room for one only."""
        return not claim.override, self.standing(claim.provider), claim.provider.name


@dataclass(frozen=True, slots=True)
class Replacement:
    """A thing of one package that another replaces on request.

    Attributes:
        thing: What it is.
        key: What its registry finds it by.
        by: Who replaces it.
        of: Whose it was.
        reason: Why, as the plugin says.
        where: Module and line of the replacement.
    """

    thing: str
    key: Any
    by: Provider
    of: Provider
    reason: str
    where: str

    def __str__(self) -> str:
        """Return it as a line for people."""
        return (
            f"{self.thing}, of {self.of}, is replaced by {self.by} at {self.where}: {self.reason}"
        )


def judge(contests: Iterable[Contest]) -> tuple[dict[Provider, str], list[Replacement]]:
    """Decide who is refused, and what is replaced.

    Returns:
        For each provider that is refused why, and how to fix it; and the replacements by those
        that are not.
    """
    contests = list(contests)
    refused: dict[Provider, str] = {}
    for contest, newcomer, holder in _pairs(contests):
        stronger = contest.standing(holder.provider) < contest.standing(newcomer.provider)
        if not stronger or not newcomer.replaces(holder):
            continue
        if holder.final or not newcomer.override:
            refused.setdefault(newcomer.provider, _refusal(contest, newcomer, holder))
    equals = [
        (contest, newcomer, holder)
        for contest, newcomer, holder in _pairs(contests)
        if contest.standing(holder.provider) == contest.standing(newcomer.provider)
        and holder.provider.name < newcomer.provider.name
    ]
    # By the name of the newcomer, so that whoever holds a thing is settled before.
    for contest, newcomer, holder in sorted(equals, key=lambda found: found[1].provider.name):
        settled = {holder.provider, newcomer.provider} & refused.keys()
        asked = newcomer.override and not holder.override
        yields = holder.override and not newcomer.override
        if not settled and not asked and not yields and newcomer.replaces(holder):
            refused[newcomer.provider] = _refusal(contest, newcomer, holder)
    replacements = [
        Replacement(
            contest.thing,
            contest.key,
            winner.provider,
            loser.provider,
            winner.override,
            winner.where,
        )
        for contest, winner, loser in _pairs(contests)
        if winner.override
        and not loser.override
        and winner.replaces(loser)
        and contest.standing(winner.provider) >= contest.standing(loser.provider)
        and not {winner.provider, loser.provider} & refused.keys()
    ]
    return refused, list(dict.fromkeys(replacements))


def _pairs(contests: Sequence[Contest]) -> Iterable[tuple[Contest, Claim, Claim]]:
    for contest in contests:
        for left in contest.claims:
            for right in contest.claims:
                if not _one_owner(left.provider, right.provider):
                    yield contest, left, right


def _one_owner(left: Provider, right: Provider) -> bool:
    return left == right or left.package == right.package or (left.own and right.own)


def _refusal(contest: Contest, newcomer: Claim, holder: Claim) -> str:
    """Return why a claim is refused, and how its author fixes that."""
    text = (
        f"{contest.thing} at {newcomer.where} would replace that of {holder.provider} at "
        f"{holder.where}"
    )
    if contest.standing(holder.provider) < len(contest.owners):
        text += f", which owns {'it' if len(contest.owners) == 1 else 'the op or the device'}"
    if holder.final:
        return f"{text}; {holder.final}"
    if newcomer.override and holder.override:
        return f"{text}, which asks for the same; disable one with HEADRACE_DISABLE_PLUGINS"
    return (
        f'{text}; fix {newcomer.provider}: ask for it with override="the reason", or offer it '
        "under a name of its own"
    )


def check_reason(override: object) -> str:
    """Return the reason of an override, refusing what is none.

    Raises:
        TypeError: if it is no text.
    """
    if isinstance(override, str):
        return override.strip()
    raise TypeError(f'override takes the reason, as in override="faster", got {shown(override)}')
