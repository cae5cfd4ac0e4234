"""The plugin host: its hooks, its laziness, its duplicates, and plugins that are broken."""

from __future__ import annotations

import inspect
import re
import sys
import types

import numpy as np
import pytest

import headrace as hr
from headrace.errors import PluginError
from headrace.extend import GradientTable, KernelRegistry, KernelTable, hookimpl
from headrace.extend.settings import Setting, text
from headrace.plugins import hookspecs
from headrace.plugins.host import PluginHost
from tests.children import run_program

HOOKS = [name for name in vars(hookspecs) if name.startswith("headrace_")]


def _keep(step, context):
    return step


def _noop_kernel(xp, x, y):
    return x


def kernels(op="Add", **options):
    table = KernelTable()
    table.plain(op, **options)(_noop_kernel)
    return table


RUNTIME = types.SimpleNamespace(machine=None, register=None, close=None)


class Recorder:
    """Implements every hook, and counts the calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    @hookimpl
    def headrace_declare_ops(self):
        self.calls.append("headrace_declare_ops")

    @hookimpl
    def headrace_register_names(self, registry):
        self.calls.append("headrace_register_names")
        registry.add("answer", "os:sep")

    @hookimpl
    def headrace_register_devices(self, registry):
        self.calls.append("headrace_register_devices")
        registry.add("toy", count=lambda: 1, factory=print)

    @hookimpl
    def headrace_register_kernels(self, registry):
        self.calls.append("headrace_register_kernels")
        registry.add("toy", kernels())

    @hookimpl
    def headrace_register_gradients(self, registry):
        self.calls.append("headrace_register_gradients")
        table = GradientTable()
        table.add("Add")(_noop_kernel)
        registry.add(table)

    @hookimpl
    def headrace_register_passes(self, registry):
        self.calls.append("headrace_register_passes")
        registry.add_pass("whole", _keep)

    @hookimpl
    def headrace_register_settings(self, registry):
        self.calls.append("headrace_register_settings")
        registry.add(Setting("HEADRACE_TOY", text, None, "a toy"))

    @hookimpl
    def headrace_register_targets(self, registry):
        self.calls.append("headrace_register_targets")
        registry.add("toy", lambda target, config: RUNTIME)

    @hookimpl
    def headrace_register_commands(self, registry):
        self.calls.append("headrace_register_commands")
        registry.add("toy", "toy.cli:main", "play")

    @hookimpl
    def headrace_register_translations(self, registry):
        self.calls.append("headrace_register_translations")

    @hookimpl
    def headrace_diagnose(self):
        self.calls.append("headrace_diagnose")
        return {"title": "toy", "problems": []}


@pytest.fixture
def recorder():
    return Recorder()


@pytest.fixture
def recorded(recorder, fake_entry):
    return PluginHost([fake_entry("rec", recorder)])


def test_hooks_are_documented_and_typed():
    assert len(HOOKS) == 11
    for name in HOOKS:
        hook = getattr(hookspecs, name)
        assert "Called once" in hook.__doc__ or "Called by" in hook.__doc__
        signature = inspect.signature(hook)
        assert signature.return_annotation is not inspect.Signature.empty
        assert all(p.annotation is not p.empty for p in signature.parameters.values())


def test_every_hook_is_called_once(recorded, recorder):
    assert recorder.calls == []
    for _ in range(2):
        assert recorded.ops_declared
        assert recorded.resolve_name("answer") == "/"
        assert recorded.devices.get("toy").name == "toy"
        assert recorded.kernels.covers("Add", "toy", None)
        assert list(recorded.gradients) == ["Add"]
        assert [p.name for p in recorded.passes.added.passes] == ["keep"]
        assert "dist-rec" in recorded.settings.by_package()
    assert recorded.open_runtime("toy://", hr.Config()) is RUNTIME
    assert recorded.diagnoses() == [{"title": "toy", "problems": []}]
    assert sorted(recorder.calls) == sorted(HOOKS)


def test_unknown_target(recorded):
    message = r"no plugin opens the session target 'moon://' \(targets that are: toy:\.\.\.\)"
    with pytest.raises(PluginError, match=message):
        recorded.open_runtime("moon://", hr.Config())


def test_plugins_load_when_first_needed(fake_entry, recorder):
    loaded = []

    class Slow(fake_entry):
        def load(self):
            loaded.append(self.name)
            return super().load()

    plugins = PluginHost([Slow("slow", recorder)])
    assert loaded == []
    assert plugins.names.get("answer") == "os:sep"
    assert loaded == ["slow"]
    assert plugins.kernels
    assert loaded == ["slow"]


def test_name_is_imported_when_it_is_used(fake_entry, monkeypatch, tmp_path):
    (tmp_path / "module_of_a_name.py").write_text("value = 7")
    monkeypatch.syspath_prepend(str(tmp_path))

    class Names:
        @hookimpl
        def headrace_register_names(self, registry):
            registry.add("seven", "module_of_a_name:value")
            registry.add("gone", "module_that_is_missing")

    plugins = PluginHost([fake_entry("names", Names())])
    assert set(plugins.names) == {"seven", "gone"}
    assert "module_of_a_name" not in sys.modules
    assert plugins.resolve_name("seven") == 7
    monkeypatch.delitem(sys.modules, "module_of_a_name")
    with pytest.raises(PluginError, match="module_that_is_missing, which fails to import"):
        plugins.resolve_name("gone")


def test_import_of_headrace_loads_no_plugin():
    program = """
import headrace, sys
from headrace.plugins.host import host
assert "manager" not in vars(host())
assert not [m for m in sys.modules if m.startswith("headrace_")], sys.modules
"""
    run_program(program)


def test_official_names_say_what_to_install(fake_entry):
    plugins = PluginHost([])
    with pytest.raises(AttributeError, match="pip install headrace-train"):
        plugins.resolve_name("train")
    with pytest.raises(AttributeError, match="headrace has no attribute 'trian'"):
        plugins.resolve_name("trian")
    broken = PluginHost([fake_entry("bad", ImportError("no h5py"))])
    with pytest.raises(AttributeError, match="'bad' is installed but broken: ImportError: no h5py"):
        broken.resolve_name("train")


def test_disabled_plugins_are_not_loaded(fake_entry, recorder, monkeypatch):
    monkeypatch.setenv("HEADRACE_DISABLE_PLUGINS", "bad, other")
    entries = [fake_entry("bad", RuntimeError("loaded")), fake_entry("rec", recorder)]
    plugins = PluginHost(entries)
    assert {p.name: p.state for p in plugins.plugins()} == {"bad": "disabled", "rec": "loaded"}
    assert plugins.broken() == ""


# -- broken plugins


class UnknownHook:
    @hookimpl
    def headrace_register_kernel(self, registry):
        pass


class WrongArgument:
    @hookimpl
    def headrace_register_kernels(self, registery):
        pass


BROKEN = {
    "import": (RuntimeError("no licence"), "RuntimeError: no licence"),
    "exit": (SystemExit("no licence"), "SystemExit: no licence"),
    "unknown hook": (UnknownHook(), "unknown hook 'headrace_register_kernel'"),
    "argument": (WrongArgument(), "registery"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_plugin_that_does_not_load_is_recorded(kind, fake_entry, recorder):
    plugin, reason = BROKEN[kind]
    plugins = PluginHost([fake_entry("bad", plugin), fake_entry("rec", recorder)])
    bad, good = plugins.plugins()
    assert (bad.state, good.state) == ("broken", "loaded")
    assert reason in bad.reason
    assert bad.distribution == "dist-bad 1.0"
    assert "plugin 'bad' is installed but broken" in plugins.broken()
    assert plugins.kernels.covers("Add", "toy", None)


@pytest.mark.parametrize("kind", [OSError, SystemExit])
@pytest.mark.parametrize(
    ("hook", "registry"),
    [
        ("headrace_register_names", "names"),
        ("headrace_register_settings", "settings"),
        ("headrace_register_devices", "devices"),
        ("headrace_register_kernels", "kernels"),
        ("headrace_register_gradients", "gradients"),
        ("headrace_register_passes", "passes"),
        ("headrace_register_targets", "targets"),
        ("headrace_register_commands", "commands"),
    ],
)
def test_hook_that_raises_is_recorded(hook, registry, kind, fake_entry, recorder):
    def failing(self, registry):
        raise kind("libfast.so.3 is missing")

    failing.__name__ = hook
    bad = type("Bad", (), {hook: hookimpl(failing)})()
    plugins = PluginHost([fake_entry("bad", bad), fake_entry("rec", recorder)])
    assert getattr(plugins, registry) is not None
    assert hook in recorder.calls
    (state,) = [p for p in plugins.plugins() if p.name == "bad"]
    assert state.state == "broken"
    assert re.fullmatch(
        rf"{hook}: {kind.__name__}: libfast.so.3 is missing \(at {re.escape(__name__)}:\d+\)",
        state.reason,
    )


def test_hook_that_declares_ops_may_raise(fake_entry, recorder):
    class Bad:
        @hookimpl
        def headrace_declare_ops(self):
            raise PluginError("op 'Add' is declared twice")

    plugins = PluginHost([fake_entry("bad", Bad()), fake_entry("rec", recorder)])
    assert plugins.ops_declared
    assert "headrace_declare_ops: PluginError: op 'Add'" in plugins.broken()
    assert recorder.calls.count("headrace_declare_ops") == 1


def test_diagnosis_that_raises_is_a_problem(fake_entry):
    class Bad:
        @hookimpl
        def headrace_diagnose(self):
            raise OSError("no driver")

    (report,) = PluginHost([fake_entry("bad", Bad())]).diagnoses()
    assert report["title"] == "bad"
    ((problem, fix),) = report["problems"]
    assert problem.startswith("headrace_diagnose failed: OSError: no driver\n  in plugin 'bad'")
    assert fix == "fix or upgrade dist-bad, or set HEADRACE_DISABLE_PLUGINS=bad"


# -- duplicates name both


def one_hook(name, function):
    return type("Plugin", (), {name: hookimpl(function)})()


def duplicates(hook, first, second, fake_entry):
    """Return why the second of two plugins is broken."""

    def named(function):
        def call(self, registry):
            function(registry)

        call.__name__ = hook
        return one_hook(hook, call)

    plugins = PluginHost([fake_entry("a", named(first)), fake_entry("b", named(second))])
    plugins.ask_all()
    states = {p.name: p for p in plugins.plugins()}
    assert states["a"].state == "loaded"
    return states["b"].reason


def test_two_plugins_of_one_name(fake_entry, recorder):
    plugins = PluginHost([fake_entry("same", recorder), fake_entry("same", Recorder())])
    assert plugins.names.get("answer") == "os:sep"
    assert "two plugins are called 'same': same_module (dist-same 1.0) and" in plugins.broken()


def test_duplicate_kernel(fake_entry):
    reason = duplicates(
        "headrace_register_kernels",
        lambda registry: registry.add("cpu", kernels()),
        lambda registry: registry.add("cpu", kernels(dtypes=["float32"])),
        fake_entry,
    )
    assert re.match(
        r"the kernel for Add on cpu at \S*test_host:\d+ would replace that of plugin 'a' at "
        r"\S*test_host:\d+; fix plugin 'b': ask for it with override=\"the reason\"",
        reason,
    )


def test_kernels_that_replace_nothing_are_no_duplicates(fake_entry):
    reason = duplicates(
        "headrace_register_kernels",
        lambda registry: registry.add("cpu", kernels(dtypes=["float64"])),
        lambda registry: [
            registry.add("cpu", kernels(dtypes=["float32"])),
            registry.add("cpu", kernels(priority=-5)),
            registry.add("toy", kernels()),
        ],
        fake_entry,
    )
    assert reason == ""


def test_duplicate_gradient(fake_entry):
    first, second = GradientTable(), GradientTable()
    first.add("Add")(_noop_kernel)
    second.add("Add")(lambda op, gy: [gy])
    reason = duplicates(
        "headrace_register_gradients",
        lambda registry: registry.add(first),
        lambda registry: registry.add(second),
        fake_entry,
    )
    assert "the gradient rule of Add at" in reason
    assert "would replace that of plugin 'a'" in reason
    assert reason.count("test_host:") == 2


def test_duplicate_name(fake_entry):
    reason = duplicates(
        "headrace_register_names",
        lambda registry: registry.add("answer", "package_one"),
        lambda registry: registry.add("answer", "package_two:train"),
        fake_entry,
    )
    assert reason.startswith(
        "the name headrace.answer at package_two:train would replace that of plugin 'a' at "
        "package_one"
    )


def test_duplicate_device(fake_entry):
    made = types.FunctionType(_noop_kernel.__code__, {"__name__": "another_package"})
    reason = duplicates(
        "headrace_register_devices",
        lambda registry: registry.add("toy", count=lambda: 1, factory=_noop_kernel),
        lambda registry: registry.add("toy", count=lambda: 1, factory=made),
        fake_entry,
    )
    assert "the device kind 'toy' at another_package:" in reason
    assert "would replace that of plugin 'a' at" in reason


def test_duplicate_setting(fake_entry):
    reason = duplicates(
        "headrace_register_settings",
        lambda registry: registry.add(Setting("HEADRACE_TOY", text, None, "a toy")),
        lambda registry: registry.add(Setting("HEADRACE_TOY", text, None, "another toy")),
        fake_entry,
    )
    assert "the setting HEADRACE_TOY at " in reason
    assert "that of plugin 'a' at " in reason
    assert "read a variable of its own" in reason


def test_duplicate_target(fake_entry):
    reason = duplicates(
        "headrace_register_targets",
        lambda registry: registry.add("toy", lambda target, config: RUNTIME),
        lambda registry: registry.add("toy", lambda target, config: RUNTIME),
        fake_entry,
    )
    assert "the opener of session targets toy:... at" in reason
    assert "would replace that of plugin 'a' at" in reason


def test_duplicate_command(fake_entry):
    reason = duplicates(
        "headrace_register_commands",
        lambda registry: registry.add("toy", "toy:main", "play"),
        lambda registry: registry.add("toy", "toy:other", "play on"),
        fake_entry,
    )
    assert "the command toy at" in reason
    assert "would replace that of plugin 'a' at" in reason


# -- nothing on the way of a step


def test_cached_step_calls_no_hook(mini, recorder):
    mini.manager.register(recorder, name="rec")
    x = hr.placeholder(hr.float32, [2])
    y = x + x
    with hr.Session() as session:
        call = session.make_callable(y, [x])
        session.run(y, {x: [1, 2]})
        watched: list[str] = []
        stop = mini.manager.add_hookcall_monitoring(
            before=lambda name, implementations, arguments: watched.append(name),
            after=lambda *_: None,
        )
        before = list(recorder.calls)
        for _ in range(10):
            assert session.run(y, {x: [1, 2]}).tolist() == [2, 4]
            assert call(np.ones(2, np.float32)).tolist() == [2, 2]
        stop()
    assert watched == []
    assert recorder.calls == before


def test_a_table_with_a_clash_is_not_added_by_halves():
    first, second = KernelTable(), KernelTable()
    first.plain("Mul")(lambda xp, x, y: x)
    second.plain("Add")(lambda xp, x, y: x)
    second.plain("Mul")(lambda xp, x, y: x)
    registry = KernelRegistry()
    registry.add("cpu", first)
    with pytest.raises(PluginError, match="two kernels for Mul on cpu"):
        registry.add("cpu", second)
    assert not registry.covers("Add", "cpu", hr.float32)


class Lender:
    """Adds kernels for array modules, and one for its own kind of devices."""

    @hookimpl
    def headrace_register_kernels(self, registry):
        registry.add_for_array_modules([*kernels("Add"), *kernels("Mul")])


class Borrower:
    @hookimpl
    def headrace_register_devices(self, registry):
        registry.add("toy", count=lambda: 1, factory=print)

    @hookimpl
    def headrace_register_kernels(self, registry):
        registry.add("toy", kernels("Mul"))
        registry.use_array_kernels("toy")


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_a_kind_of_devices_may_use_the_kernels_for_array_modules(names, fake_entry):
    entries = [fake_entry(names[0], Lender()), fake_entry(names[1], Borrower())]
    registry = PluginHost(entries).kernels
    assert registry.devices_of("Add") == ["toy"]
    own, shared = registry.candidates("Mul", "toy", hr.float32)
    assert registry.provider(("Mul", "toy"), own).name == names[1]
    assert registry.provider(("Mul", "toy"), shared).name == names[0]
    assert not registry.covers("Add", "other", hr.float32)
