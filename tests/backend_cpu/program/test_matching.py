"""The table of implementations, and who of them takes what."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import headrace as hr
from headrace_cpu.program import matching
from headrace_cpu.program.instruction import Bound, Instruction
from headrace_cpu.program.matchers import MATCHERS
from headrace_cpu.program.matches import Matches
from headrace_cpu.program.matching import Matcher, Need, match
from headrace_cpu.program.settings import CompileSettings


class Named(Instruction):
    """An instruction that tells who made it."""

    def __init__(self, maker, candidate):
        self.ops = (candidate.op,)
        self.reads, self.writes = candidate.op.inputs, candidate.op.outputs
        self.maker = maker
        self.fallback = candidate.fallback

    def bind(self, at):
        return Bound(lambda: None)


def matcher(name, priority=0, types=("Exp",), makes=True, **more):
    return Matcher(
        name=name,
        priority=priority,
        wants=lambda candidate: candidate.op.type in types,
        make=lambda candidate: Named(name, candidate) if makes else None,
        **more,
    )


def taken(*matchers, only=None, settings=None):
    """Return by type of operation who takes it."""
    x = hr.placeholder("float32", [3])
    results = [hr.exp(x), hr.tanh(x)]
    matches = Matches(results[0].graph.operations, results)
    match(matches, settings or CompileSettings(), matchers, only)
    return {i.ops[0].type: i for i in matches.instructions}


def makers(*matchers, **more):
    return {op: i.maker for op, i in taken(*matchers, **more).items()}


def test_those_of_higher_priority_choose_first():
    low, high = matcher("low", 1, ("Exp", "Tanh")), matcher("high", 2)
    for order in ((low, high), (high, low)):
        assert makers(*order) == {"Exp": "high", "Tanh": "low"}


def test_what_one_cannot_make_is_left_to_others():
    assert makers(matcher("none", 2, makes=False), matcher("some", 1)) == {"Exp": "some"}


def test_those_that_may_not_choose_are_fallbacks_still():
    found = taken(matcher("kernel", fallback=("plain",)), matcher("plain", 1), only={"kernel"})
    assert found["Exp"].maker == "kernel"
    assert found["Exp"].fallback.maker == "plain"


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ({}, {}, "first"),
        ({"makes": False}, {}, "second"),
        ({"types": ("Tanh",)}, {}, "second"),
        ({"needs": (Need.ONEDNN,)}, {}, "second"),
        ({"makes": False}, {"makes": False}, None),
    ],
    ids=["both", "makes none", "wants none", "lacks what it needs", "neither"],
)
def test_the_first_fallback_that_can_compute_it_is_taken(first, second, expected):
    found = taken(
        matcher("kernel", 3, fallback=("first", "second")),
        matcher("first", 2, **first),
        matcher("second", 1, **second),
        only={"kernel"},
        settings=CompileSettings(onednn=False),
    )
    assert (found["Exp"].fallback.maker if found else None) == expected


@pytest.mark.parametrize("need", Need)
def test_what_is_not_there_is_looked_for_only_where_it_is_wanted(monkeypatch, need):
    asked = []

    def missing(*_):
        asked.append(need)
        return 0 if need is Need.VECTORS else None

    name = {
        Need.THREADS: "open_mp",
        Need.VECTORS: "vector_bytes",
        Need.BLAS: "loaded_blas",
        Need.ONEDNN: "load",
    }[need]
    monkeypatch.setattr(matching, name, missing)
    assert makers(matcher("unwanted", types=("Sin",), needs=(need,))) == {}
    assert not asked
    assert makers(matcher("wanted", types=("Exp", "Tanh"), needs=(need,))) == {}
    assert asked == [need]


def test_onednn_is_not_looked_for_where_the_session_does_not_want_it(monkeypatch):
    monkeypatch.setattr(matching, "load", lambda: pytest.fail("oneDNN was loaded"))
    assert not Need.ONEDNN.met(SimpleNamespace(onednn=False))


def test_the_table_has_an_order_and_fallbacks_that_stand_behind():
    table = {each.name: each for each in MATCHERS}
    assert len(table) == len(MATCHERS)
    assert len({each.priority for each in MATCHERS}) == len(MATCHERS)
    for each in MATCHERS:
        for name in each.fallback:
            assert table[name].priority < each.priority
            assert not table[name].fallback


@pytest.mark.skipif(
    not all(need.met(CompileSettings()) for need in Need), reason="needs all that matchers need"
)
@pytest.mark.parametrize(
    ("sizes", "onednn", "expected"),
    [
        ((20, 400, 800), True, "short matmul"),
        ((20, 400, 800), False, "short matmul"),
        ((500, 500, 500), True, "onednn matmul"),
        ((500, 500, 500), False, "blas matmul"),
        ((16, 4096, 4096), True, "uneven matmul"),
        ((16, 4096, 4096), False, "uneven matmul"),
    ],
)
def test_who_takes_which_product(sizes, onednn, expected):
    rows, inner, columns = sizes
    c = hr.matmul(
        hr.placeholder("float32", (rows, inner)), hr.placeholder("float32", (inner, columns))
    )
    for each in sorted(MATCHERS, key=lambda m: -m.priority):
        matches = Matches([c.op], [c])
        match(matches, CompileSettings(onednn=onednn), MATCHERS, {each.name})
        if matches.instructions:
            break
    assert each.name == expected
