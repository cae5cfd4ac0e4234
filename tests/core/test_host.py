"""The plugin host: its hooks, its laziness, its duplicates, and plugins that are broken."""

from __future__ import annotations

import inspect
import subprocess
import sys
import types

import numpy as np
import pytest

import headrace as hr
from headrace.errors import PluginError
from headrace.extend import GradientTable, KernelRegistry, KernelTable, hookimpl
from headrace.plugins import hookspecs
from headrace.plugins.host import PluginHost

HOOKS = [name for name in vars(hookspecs) if name.startswith("headrace_")]


def _noop_kernel(xp, x, y):
    return x


def kernels(op="Add", **options):
    table = KernelTable()
    table.plain(op, **options)(_noop_kernel)
    return table


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
    def headrace_open_runtime(self, target, config):
        self.calls.append("headrace_open_runtime")
        return "a runtime" if target == "toy://" else None

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
    assert len(HOOKS) == 7
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
    assert recorded.open_runtime("toy://", hr.Config()) == "a runtime"
    assert recorded.diagnoses() == [{"title": "toy", "problems": []}]
    assert sorted(recorder.calls) == sorted(HOOKS)


def test_unknown_target(recorded):
    with pytest.raises(PluginError, match=r"no plugin opens the session target 'moon://'"):
        recorded.open_runtime("moon://", hr.Config())


def test_hooks_may_take_fewer_arguments(fake_entry):
    class Brief:
        @hookimpl
        def headrace_open_runtime(self, target):
            return target

    plugins = PluginHost([fake_entry("brief", Brief())])
    assert plugins.open_runtime("x", hr.Config()) == "x"


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
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


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
        ("headrace_register_devices", "devices"),
        ("headrace_register_kernels", "kernels"),
        ("headrace_register_gradients", "gradients"),
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
    assert state.reason == f"{hook}: {kind.__name__}: libfast.so.3 is missing"


def test_hook_that_declares_ops_may_raise(fake_entry, recorder):
    class Bad:
        @hookimpl
        def headrace_declare_ops(self):
            raise PluginError("op 'Add' is declared twice")

    plugins = PluginHost([fake_entry("bad", Bad()), fake_entry("rec", recorder)])
    assert plugins.ops_declared
    assert "headrace_declare_ops: PluginError: op 'Add'" in plugins.broken()
    assert recorder.calls == ["headrace_declare_ops"]


def test_diagnosis_that_raises_is_a_problem(fake_entry):
    class Bad:
        @hookimpl
        def headrace_diagnose(self):
            raise OSError("no driver")

    (report,) = PluginHost([fake_entry("bad", Bad())]).diagnoses()
    assert report == {
        "title": "bad",
        "problems": [("OSError: no driver", "reinstall the plugin")],
    }


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
    for registry in ("names", "devices", "kernels", "gradients"):
        assert getattr(plugins, registry) is not None
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
    assert "two kernels for Add on cpu with priority 0: at" in reason
    assert reason.count("test_host:") == 2
    assert "give one a higher priority" in reason


def test_kernels_that_do_not_meet_are_no_duplicates(fake_entry):
    reason = duplicates(
        "headrace_register_kernels",
        lambda registry: registry.add("cpu", kernels(dtypes=["float64"])),
        lambda registry: [
            registry.add("cpu", kernels(dtypes=["float32"])),
            registry.add("cpu", kernels(priority=5)),
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
    assert "two gradient rules for Add: at" in reason
    assert reason.count("test_host:") == 2


def test_duplicate_name(fake_entry):
    reason = duplicates(
        "headrace_register_names",
        lambda registry: registry.add("train", "package_one"),
        lambda registry: registry.add("train", "package_two:train"),
        fake_entry,
    )
    assert "headrace.train is provided twice: by package_one and by package_two:train" in reason
    assert "HEADRACE_DISABLE_PLUGINS" in reason


def test_duplicate_device(fake_entry):
    made = types.FunctionType(_noop_kernel.__code__, {"__name__": "another_package"})
    reason = duplicates(
        "headrace_register_devices",
        lambda registry: registry.add("cpu", count=lambda: 1, factory=_noop_kernel),
        lambda registry: registry.add("cpu", count=lambda: 1, factory=made),
        fake_entry,
    )
    assert "device kind 'cpu' is provided twice" in reason
    assert "test_host" in reason
    assert "another_package" in reason


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
