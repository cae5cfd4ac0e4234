"""Tables of kernels that are imported when an op of theirs is first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from headrace.dtypes import float32
from headrace.errors import PluginError
from headrace.extend import Floating, KernelRegistry, Spec, op
from headrace.graph.schema import OPS
from headrace.plugins.host import host
from headrace.plugins.ownership import CORE, Provider, package_of
from headrace.plugins.tables import Kernel, KernelTable

LATER = Provider("later", "pack_later")
OTHER = Provider("other", "pack_other")

_KERNELS = """
from headrace.extend import KernelTable
KERNELS = KernelTable()

@KERNELS.plain("{op}")
def kernel(xp, x):
    return x
"""


def _declare(name: str, package: str) -> None:
    def rule(x: Floating) -> Spec:
        """An op of the tests."""
        return x

    rule.__module__ = f"{package}.ops"
    op(name, public="")(rule)


@pytest.fixture(autouse=True)
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Let modules be written that can be imported; what they declare goes afterwards."""
    before = {schema.type for schema in OPS}
    monkeypatch.syspath_prepend(tmp_path)

    def write(name: str, text: str) -> None:
        (tmp_path / f"{name}.py").write_text(text)

    yield write
    OPS.forget({schema.type for schema in OPS} - before)
    for name in [n for n in sys.modules if n.startswith("pack_later")]:
        del sys.modules[name]


def _joined(*given: tuple[Provider, KernelRegistry]) -> tuple[KernelRegistry, dict[Provider, str]]:
    registry = KernelRegistry()
    refused = registry.join(
        [(provider, own.close()) for provider, own in given],
        lambda key: (package_of(OPS[key[0]].where),),
    )
    return registry, refused


def _later(target: str) -> tuple[Provider, KernelRegistry]:
    registry = KernelRegistry()
    registry.add_later("toy", target)
    return LATER, registry


def _table(name: str, override: str = "") -> KernelTable:
    table = KernelTable()
    table.plain(name, override=override)(lambda xp, x: x)
    return table


def test_a_table_is_imported_with_the_first_use_of_an_op_of_the_package(packages) -> None:
    _declare("LaterOne", "pack_later")
    _declare("LaterElse", "pack_other")
    packages("pack_later_kernels", _KERNELS.format(op="LaterOne"))
    registry, refused = _joined(_later("pack_later_kernels:KERNELS"))
    assert not refused
    assert registry.candidates("LaterElse", "toy", None) == []
    assert "pack_later_kernels" not in sys.modules
    (kernel,) = registry.candidates("LaterOne", "toy", None)
    assert kernel.function.__module__ == "pack_later_kernels"
    assert registry.provider(("LaterOne", "toy"), kernel) == LATER
    assert registry.devices_of("LaterOne") == ["toy"]


def test_all_tables_are_imported_for_who_lists_them(packages) -> None:
    _declare("LaterOne", "pack_later")
    packages("pack_later_kernels", _KERNELS.format(op="LaterOne"))
    registry, _ = _joined(_later("pack_later_kernels:KERNELS"))
    assert registry.offers == {}
    registry.arrive()
    assert list(registry.offers) == [("LaterOne", "toy")]


@pytest.mark.parametrize("override", ["", "it is faster"])
def test_who_offers_a_kernel_for_an_op_of_the_package_meets_its_own(packages, override) -> None:
    _declare("LaterOne", "pack_later")
    packages("pack_later_kernels", _KERNELS.format(op="LaterOne"))
    theirs = KernelRegistry()
    theirs.add("toy", _table("LaterOne", override))
    registry, refused = _joined((OTHER, theirs), _later("pack_later_kernels:KERNELS"))
    if override:
        best = registry.candidates("LaterOne", "toy", None)[0]
        assert registry.provider(("LaterOne", "toy"), best) == OTHER
    else:
        assert list(refused) == [OTHER]
        assert "which owns it" in refused[OTHER]


@pytest.mark.needs("backend-cpu")
def test_threads_that_compile_at_once_find_one_kernel_and_who_made_it() -> None:
    """Steps of several threads make kernels of expressions while others look for their makers."""
    given = host().kernels._given
    ops = [schema.type for schema in OPS if schema.expression is not None]
    assert len(ops) > 50
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(5):
            registry = KernelRegistry()
            registry.join(given, lambda key: (package_of(OPS[key[0]].where),))

            def ask(registry: KernelRegistry = registry) -> list[Kernel | None]:
                found = [registry._stated_kernel(op, "cpu", float32) for op in ops]
                made = [kernel for kernel in found if kernel is not None]
                assert len(made) > 50
                for kernel in made:
                    assert registry.provider((kernel.op, "cpu"), kernel) == CORE
                return found

            with ThreadPoolExecutor(4) as pool:
                first, *others = (
                    made.result(timeout=30) for made in [pool.submit(ask) for _ in range(4)]
                )
            for other in others:
                assert all(one is another for one, another in zip(first, other, strict=True))
    finally:
        sys.setswitchinterval(before)


def test_a_table_may_be_for_what_some_modules_of_core_declare(packages) -> None:
    _declare("LaterOne", "pack_core")
    packages("pack_later_kernels", _KERNELS.format(op="LaterOne"))
    own = KernelRegistry()
    own.add_later("toy", "pack_later_kernels:KERNELS", ["pack_core.ops"])
    registry, _ = _joined((LATER, own))
    assert registry.candidates("Sin", "toy", None) == []
    assert "pack_later_kernels" not in sys.modules
    (kernel,) = registry.candidates("LaterOne", "toy", None)
    assert registry.provider(("LaterOne", "toy"), kernel) == LATER
    other = KernelRegistry()
    other.add_later("toy", "pack_later_kernels:KERNELS", ["pack_core.others", "pack_core.ops.one"])
    registry, _ = _joined((LATER, other))
    assert registry.candidates("LaterOne", "toy", None) == []
    _declare("LaterElse", "pack_other")
    wrong = KernelRegistry()
    wrong.add_later("toy", "pack_later_kernels:KERNELS", ["pack_other.ops"])
    registry, _ = _joined((LATER, wrong))
    with pytest.raises(PluginError, match="other modules than it named declare: LaterOne"):
        registry.candidates("LaterElse", "toy", None)


def test_a_table_for_ops_of_others_is_refused(packages) -> None:
    _declare("LaterOne", "pack_later")
    _declare("LaterElse", "pack_other")
    packages("pack_later_kernels", _KERNELS.format(op="LaterElse"))
    registry, _ = _joined(_later("pack_later_kernels:KERNELS"))
    with pytest.raises(PluginError, match="ops that it does not declare: LaterElse"):
        registry.candidates("LaterOne", "toy", None)


@pytest.mark.parametrize(
    ("target", "text", "match"),
    [
        (
            "pack_later_none:KERNELS",
            "",
            "none:KERNELS' of plugin 'later' cannot be imported",
        ),
        ("pack_later_kernels:TABLE", "", "has no attribute 'TABLE'"),
        ("pack_later_kernels:KERNELS", "1 / 0", "ZeroDivisionError"),
    ],
)
def test_what_cannot_be_imported_is_told_with_the_plugin(packages, target, text, match) -> None:
    _declare("LaterOne", "pack_later")
    packages("pack_later_kernels", text)
    registry, _ = _joined(_later(target))
    for _ in range(2):
        with pytest.raises(PluginError, match=match):
            registry.candidates("LaterOne", "toy", None)


@pytest.mark.parametrize("target", ["", "module", ":name", "module:"])
def test_a_target_names_a_module_and_a_name(target) -> None:
    with pytest.raises(PluginError, match="a table for later is named as 'module:name'"):
        KernelRegistry().add_later("toy", target)


def test_a_closed_registry_takes_no_tables() -> None:
    with pytest.raises(PluginError, match="in the hook headrace_register_kernels only"):
        KernelRegistry().close().add_later("toy", "module:name")
