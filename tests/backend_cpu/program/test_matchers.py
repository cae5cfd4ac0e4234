"""The table of implementations: it says of modules that it imports later what these have."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from headrace_cpu.program import matchers

# Where a module says which types it may want, by the name of its matcher.
TYPES = {
    "winograd": "winograd.match:CONVOLUTIONS",
    "onednn convolution": "onednn.match_convolution:CONVOLUTIONS",
    "small matrices": "native_loops.small_matrices:METHODS",
    "lapack": "lapack.match:TAKEN",
    "picked fold": "native_loops.gather_reduce:FOLDS",
    "windows": "windows.match:WINDOWS",
    "native loop": "native_loops.plans:PLANS",
    "part": "native_loops.strided_copy:TYPES",
}
LATER = re.findall(r'_later\("([^"]+)"\)', Path(matchers.__file__).read_text("utf-8"))


def resolved(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(import_module(f"headrace_cpu.{module}"), name)


@pytest.mark.parametrize(("name", "where"), TYPES.items())
def test_types_are_those_that_the_module_wants(name: str, where: str) -> None:
    (matcher,) = (m for m in matchers.MATCHERS if m.name == name)
    assert matcher.types is not None
    assert sorted(matcher.types) == sorted(resolved(where))


@pytest.mark.parametrize("target", sorted(set(LATER)))
def test_what_is_imported_later_is_there(target: str) -> None:
    assert callable(resolved(target))


def test_every_module_that_is_imported_later_is_compared() -> None:
    modules = {target.partition(":")[0] for target in LATER if target.endswith("wants")}
    known = {where.partition(":")[0] for where in TYPES.values()}
    # All native loops share what says whether one is wanted.
    assert modules - known == {"native_loops.instruction"}
