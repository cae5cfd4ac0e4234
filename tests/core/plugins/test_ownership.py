"""Who is refused where two offer one thing, whatever their names are."""

from __future__ import annotations

import pytest

from headrace.plugins.ownership import (
    CORE,
    Claim,
    Contest,
    Provider,
    check_reason,
    judge,
    line_of_function,
    package_of,
)

CPU = Provider("cpu", "headrace_cpu", "headrace-backend-cpu 1.0")
CUDA = Provider("cuda", "headrace_cuda")
AAA = Provider("aaa", "pack_aaa", "pack-aaa 1.0")
BBB = Provider("bbb", "pack_bbb")
ZZZ = Provider("zzz", "pack_zzz")
F32, F64 = frozenset({"float32"}), frozenset({"float64"})


def claim(provider, override="", **options):
    return Claim(provider, f"{provider.package}:1", override, **options)


# Owners, claims, who is refused, who replaces whom.
CASES = {
    "alone": (["headrace"], [claim(AAA)], set(), []),
    "owner first by name": (["pack_aaa"], [claim(AAA), claim(ZZZ)], {ZZZ}, []),
    "owner last by name": (["pack_zzz"], [claim(AAA), claim(ZZZ)], {AAA}, []),
    "what is core's is ours": (["headrace"], [claim(AAA), claim(CPU)], {AAA}, []),
    "ours do not contest": (["headrace"], [claim(CUDA), claim(CPU)], set(), []),
    "declared by core": (["headrace"], [claim(AAA), claim(CORE)], {AAA}, []),
    "op before device": (["pack_zzz", "headrace"], [claim(CPU), claim(ZZZ)], {CPU}, []),
    "device before nobody": (["pack_bbb", "pack_zzz"], [claim(AAA), claim(ZZZ)], {AAA}, []),
    "strangers": (["headrace"], [claim(BBB), claim(AAA)], {BBB}, []),
    "strangers and the owner": (["headrace"], [claim(AAA), claim(BBB), claim(CPU)], {AAA, BBB}, []),
    "on request": (["headrace"], [claim(AAA, "why"), claim(CPU)], set(), [(AAA, CPU)]),
    "stranger on request": ([], [claim(AAA), claim(BBB, "why")], set(), [(BBB, AAA)]),
    "first stranger on request": ([], [claim(AAA, "why"), claim(BBB)], set(), [(AAA, BBB)]),
    "two requests": (["headrace"], [claim(AAA, "a"), claim(BBB, "b"), claim(CPU)], {BBB}, [AAA]),
    "never": (["headrace"], [claim(AAA, "why"), claim(CORE, final="no")], {AAA}, []),
    "other dtypes": (["headrace"], [claim(AAA, dtypes=F32), claim(CPU, dtypes=F64)], set(), []),
    "some dtypes": (["headrace"], [claim(AAA, dtypes=F32), claim(CPU)], {AAA}, []),
    "asked later": (["headrace"], [claim(AAA, priority=-1), claim(CPU)], set(), []),
    "asked before": (["headrace"], [claim(AAA, priority=9), claim(CPU)], {AAA}, []),
    "asked later, on request": (
        ["headrace"],
        [claim(AAA, "why", priority=-1), claim(CPU)],
        set(),
        [(AAA, CPU)],
    ),
}


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("turned", [False, True], ids=["", "turned"])
def test_who_is_refused(kind, turned):
    owners, claims, expected, replaced = CASES[kind]
    contest = Contest("the thing", "key", owners, claims[::-1] if turned else claims)
    refused, replacements = judge([contest])
    assert set(refused) == expected
    pairs = [(r.by, r.of) for r in replacements]
    # Where several are replaced by one, it is enough to say by whom.
    assert pairs == replaced or sorted({by.name for by, _ in pairs}) == [
        provider.name for provider in replaced if isinstance(provider, Provider)
    ]


def test_the_message_names_the_newcomer_and_what_to_do():
    contest = Contest("the kernel for Sin", "Sin", ["headrace"], [claim(AAA), claim(CPU)])
    refused, _ = judge([contest])
    assert refused[AAA] == (
        "the kernel for Sin at pack_aaa:1 would replace that of plugin 'cpu' at headrace_cpu:1, "
        "which owns it; fix plugin 'aaa': ask for it with override=\"the reason\", or offer it "
        "under a name of its own"
    )


def test_strangers_are_told_that_nobody_owns_it():
    refused, _ = judge([Contest("the thing", "key", [], [claim(AAA), claim(BBB)])])
    assert "owns" not in refused[BBB]
    assert "plugin 'aaa' at pack_aaa:1; fix plugin 'bbb'" in refused[BBB]


def test_a_refused_plugin_is_in_nobodys_way():
    """AAA takes what is core's, so BBB has what AAA would have had before it."""
    contests = [
        Contest("one", 1, ["headrace"], [claim(AAA), claim(CPU)]),
        Contest("two", 2, [], [claim(AAA), claim(BBB)]),
    ]
    refused, _ = judge(contests)
    assert set(refused) == {AAA}


def test_replacements_of_refused_plugins_do_not_count():
    contests = [
        Contest("one", 1, ["headrace"], [claim(AAA), claim(CPU)]),
        Contest("two", 2, ["headrace"], [claim(AAA, "why"), claim(CPU)]),
    ]
    refused, replacements = judge(contests)
    assert set(refused) == {AAA}
    assert replacements == []


def test_a_reason_is_text():
    assert check_reason(" faster ") == "faster"
    assert check_reason("") == ""
    for wrong in (True, None, 1):
        with pytest.raises(TypeError, match='override takes the reason, as in override="faster"'):
            check_reason(wrong)


def test_packages_and_lines():
    assert package_of("headrace_cpu.kernels.state") == "headrace_cpu"
    assert package_of("plugin:12") == "plugin"
    first = test_packages_and_lines.__code__.co_firstlineno
    assert line_of_function(test_packages_and_lines) == f"{__name__}:{first}"
    assert line_of_function(7) == "?"
