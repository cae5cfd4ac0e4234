"""``ops --by PLUGIN``: what a plugin brings for ops, and whose they are."""

from __future__ import annotations

import json

import pytest

from headrace.cli.main import main
from headrace.extend import GradientTable, KernelTable, hookimpl
from headrace.plugins import host as host_module
from headrace.plugins.host import PluginHost


def kernel(xp, x):
    return x


def tables():
    kernels, gradients = KernelTable(), GradientTable()
    kernels.plain("Sin", dtypes=["float32", "int8"], override="for the test")(kernel)
    kernels.specialized("Neg", priority=7)(lambda node: None)
    gradients.add("Floor")(lambda op, gy: [gy])
    return kernels, gradients


class Owner:
    """Brings the kind of devices, and a kernel."""

    @hookimpl
    def headrace_register_devices(self, registry):
        registry.add("toy", count=lambda: 1, factory=print)

    @hookimpl
    def headrace_register_kernels(self, registry):
        kernels = KernelTable()
        kernels.plain("Sin", dtypes=["float32"])(kernel)
        registry.add("toy", kernels)


class Newcomer:
    @hookimpl
    def headrace_register_kernels(self, registry):
        registry.add("toy", tables()[0])


class Broken:
    @hookimpl
    def headrace_register_kernels(self, registry):
        raise OSError("libfast.so.3")


@pytest.fixture(autouse=True)
def plugins(monkeypatch, fake_entry):
    entries = [fake_entry("a", Owner()), fake_entry("b", Newcomer()), fake_entry("c", Broken())]
    monkeypatch.setattr(host_module, "_HOST", PluginHost(entries))


def listed(capsys, name):
    assert main(["ops", "--by", name, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_kernels_are_listed_with_style_priority_and_what_they_replace(capsys):
    neg, sin = listed(capsys, "b")
    assert (neg["op"], neg["owner"], neg["device"]) == ("Neg", "headrace", "toy")
    assert (neg["style"], neg["priority"], neg["dtypes"]) == ("specialized", "7", "any")
    assert (sin["style"], sin["dtypes"]) == ("plain", "float32, int8")
    assert sin["replaces"] == "for the test"
    assert "test_offers:" in sin["where"]
    assert [row["op"] for row in listed(capsys, "a")] == ["Sin"]


def test_core_declares(capsys):
    rows = listed(capsys, "core")
    assert {row["brings"] for row in rows} == {"declaration"}
    assert {"Sin", "MatMul", "While"} <= {row["op"] for row in rows}


def test_the_table_is_aligned(capsys):
    assert main(["ops", "--by", "b"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split()[:4] == ["op", "owner", "brings", "device"]
    assert len(rows) == 2


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["--by", "coer"], "no plugin is called 'coer'; did you mean 'core'?"),
        (["--by", "zebra"], "no plugin is called 'zebra'\n  plugins: a, b, c, core"),
        (["--by", "c"], "plugin 'c' is broken: "),
        (["Sin", "--by", "a"], "ops takes the name of an op or --by PLUGIN, not both"),
    ],
)
def test_mistakes_are_messages(capsys, words, match):
    assert main(["ops", *words]) == 2
    assert match in capsys.readouterr().err
