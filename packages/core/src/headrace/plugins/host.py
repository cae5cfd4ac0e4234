"""The plugin host: finds plugins, loads them lazily, and records the ones that are broken.

Pluggy and the search for entry points are imported when plugins are first looked for: together
they would take a third of the time of ``import headrace``.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.errors import PluginError
from headrace.graph.schema import OPS
from headrace.plugins.registries import (
    DeviceRegistry,
    GradientRegistry,
    KernelRegistry,
    NameRegistry,
)
from headrace.records import dataclass
from headrace.settings import read_settings

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    import pluggy

    from headrace.runtime.runtime import Runtime
    from headrace.session.config import Config

GROUP = "headrace"
R = TypeVar("R")

# Which of our own packages brings a public name, to name it where it is not installed.
OFFICIAL = {
    "gradients": "headrace-autodiff",
    "custom_gradient": "headrace-autodiff",
    "RegisterGradient": "headrace-autodiff",
    "gradient_override_map": "headrace-autodiff",
    "train": "headrace-train",
    "dist": "headrace-dist-mpi",
}


@dataclass(frozen=True, slots=True)
class PluginState:
    """What became of a plugin.

    Attributes:
        name: The name of its entry point.
        module: The module that the entry point names.
        distribution: Name and version of its package.
        state: "loaded", "disabled" or "broken".
        reason: Why it is broken.
    """

    name: str
    module: str
    distribution: str
    state: str
    reason: str = ""


class PluginHost:
    """One set of loaded plugins with the registries that they fill.

    The process has one (``host()``); tests build others.
    """

    def __init__(self, entries: Iterable[EntryPoint] | None = None) -> None:
        self._entries = entries
        self._failures: dict[str, str] = {}
        self._lock = threading.RLock()

    # -- plugins

    @cached_property
    def manager(self) -> pluggy.PluginManager:
        """The pluggy manager with every plugin that loads."""
        import pluggy

        from headrace.plugins import hookspecs

        with self._lock:
            manager = pluggy.PluginManager(hookspecs.PROJECT)
            manager.add_hookspecs(hookspecs)
            disabled = read_settings().disabled_plugins
            for entry in self._found():
                if entry.name not in disabled:
                    self._load(manager, entry)
            return manager

    def _found(self) -> list[EntryPoint]:
        if self._entries is not None:
            return list(self._entries)
        from importlib.metadata import entry_points

        return sorted(entry_points(group=GROUP), key=lambda e: (e.name, e.value))

    def _load(self, manager: pluggy.PluginManager, entry: EntryPoint) -> None:
        if manager.has_plugin(entry.name):
            others = [e for e in self._found() if e.name == entry.name]
            names = " and ".join(f"{e.value} ({_distribution(e)})" for e in others)
            self._failures[entry.name] = (
                f"two plugins are called {entry.name!r}: {names}; the first one is used"
            )
            return
        plugin: Any = None
        try:
            plugin = entry.load()
            manager.register(plugin, name=entry.name)
            manager.check_pending()
        except (Exception, SystemExit) as error:
            # Any failure becomes part of the message of whoever needs what the plugin brings.
            self._failures[entry.name] = f"{type(error).__name__}: {error}"
            if plugin is not None and manager.is_registered(plugin):
                manager.unregister(plugin)

    def plugins(self) -> list[PluginState]:
        """Return every plugin found, with its state."""
        manager = self.manager
        disabled = read_settings().disabled_plugins
        states = []
        for entry in self._found():
            reason = self._failures.get(entry.name, "")
            state = "loaded" if manager.has_plugin(entry.name) and not reason else "broken"
            if entry.name in disabled:
                state, reason = "disabled", "named in HEADRACE_DISABLE_PLUGINS"
            states.append(PluginState(entry.name, entry.value, _distribution(entry), state, reason))
        return states

    def broken(self) -> str:
        """Return one line per broken plugin, for messages; empty where none is."""
        self.manager  # noqa: B018 - loads the plugins
        return "\n".join(
            f"  plugin {name!r} is installed but broken: {reason}"
            for name, reason in self._failures.items()
        )

    def _collect(self, hook: str, registry: R) -> R:
        """Let every plugin fill ``registry``; one that raises is recorded, the others count."""
        with self._lock:
            for plugin, function in self._implementations(hook):
                try:
                    function(registry=registry)
                except (Exception, SystemExit) as error:
                    self._failures[plugin] = f"{hook}: {type(error).__name__}: {error}"
            return registry

    def _implementations(self, hook: str) -> list[tuple[str, Callable[..., Any]]]:
        caller = getattr(self.manager.hook, hook)
        # Sorted by name: what plugins add does not depend on the order of installation.
        return sorted(
            ((impl.plugin_name, impl.function) for impl in caller.get_hookimpls()),
            key=lambda pair: pair[0],
        )

    # -- registries

    @cached_property
    def kernels(self) -> KernelRegistry:
        """All kernels."""
        return self._collect("headrace_register_kernels", KernelRegistry())

    @cached_property
    def gradients(self) -> GradientRegistry:
        """All gradient rules."""
        return self._collect("headrace_register_gradients", GradientRegistry())

    @cached_property
    def devices(self) -> DeviceRegistry:
        """All kinds of devices."""
        return self._collect("headrace_register_devices", DeviceRegistry())

    @cached_property
    def names(self) -> NameRegistry:
        """All public names."""
        return self._collect("headrace_register_names", NameRegistry())

    @cached_property
    def ops_declared(self) -> bool:
        """True, once every plugin's ops are declared."""
        for plugin, function in self._implementations("headrace_declare_ops"):
            try:
                function()
            except (Exception, SystemExit) as error:
                self._failures[plugin] = f"headrace_declare_ops: {type(error).__name__}: {error}"
        return True

    def declare_ops(self) -> str:
        """Let every plugin declare its ops, once; return what is broken, for messages."""
        self.ops_declared  # noqa: B018 - declares them
        return self.broken()

    def resolve_name(self, name: str) -> Any:
        """Return the object behind the public name ``headrace.<name>``.

        Raises:
            AttributeError: if no plugin provides it; names the package that would.
        """
        target = self.names.get(name)
        if target is None:
            raise AttributeError(self._no_name(name))
        module, _, attribute = target.partition(":")
        try:
            found = importlib.import_module(module)
        except ImportError as error:
            raise PluginError(
                f"headrace.{name} is provided by {module}, which fails to import: {error}"
            ) from error
        return getattr(found, attribute) if attribute else found

    def _no_name(self, name: str) -> str:
        package = OFFICIAL.get(name)
        broken = self.broken()
        tail = f"\n{broken}" if broken else ""
        if package is None:
            return f"headrace has no attribute {name!r}{tail}"
        return f"headrace.{name} is provided by the package {package}: pip install {package}{tail}"

    def open_runtime(self, target: str, config: Config) -> Runtime:
        """Return the runtime behind a session's target.

        Raises:
            PluginError: if no plugin knows the target.
        """
        runtime = self.manager.hook.headrace_open_runtime(target=target, config=config)
        if runtime is None:
            broken = self.broken()
            raise PluginError(
                f"no plugin opens the session target {target!r}; targets of MPI clusters come from "
                "hr.dist.Cluster(...).target and need the package headrace-dist-mpi"
                + (f"\n{broken}" if broken else "")
            )
        assert runtime is not None
        return runtime  # type: ignore[no-any-return]

    def diagnoses(self) -> list[dict[str, object]]:
        """Return what each plugin tells the doctor."""
        found: list[dict[str, object]] = []
        for plugin, function in self._implementations("headrace_diagnose"):
            try:
                report = function()
            except (Exception, SystemExit) as error:
                report = {
                    "title": plugin,
                    "problems": [(f"{type(error).__name__}: {error}", "reinstall the plugin")],
                }
            if report:
                found.append(report)
        return found


def _distribution(entry: EntryPoint) -> str:
    dist = getattr(entry, "dist", None)
    return f"{dist.name} {dist.version}" if dist is not None else "?"


_HOST: PluginHost | None = None
_HOST_LOCK = threading.Lock()


def host() -> PluginHost:
    """Return the process's plugin host."""
    global _HOST
    if _HOST is None:
        with _HOST_LOCK:
            if _HOST is None:
                _HOST = PluginHost()
    return _HOST


OPS.declare_more = lambda: host().declare_ops()
