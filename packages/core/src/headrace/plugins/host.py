"""The plugin host: what plugins bring, found when it is first needed, and called by name.

Pluggy and the search for entry points are imported when plugins are first looked for: together
they would take a third of the time of ``import headrace``.
"""

from __future__ import annotations

import importlib
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from headrace.errors import PluginError, TargetError
from headrace.plugins import calls
from headrace.plugins.discovery import GROUP, Collection
from headrace.plugins.entry_points import Entry
from headrace.plugins.error_attribution import described
from headrace.plugins.ownership import (
    Distribution,
    Replacement,
)
from headrace.plugins.registries.commands import CommandRegistry
from headrace.plugins.registries.devices import DeviceKind, DeviceRegistry
from headrace.plugins.registries.gradients import GradientRegistry
from headrace.plugins.registries.kernels import KernelRegistry
from headrace.plugins.registries.names import NameRegistry
from headrace.plugins.registries.passes import PassRegistry
from headrace.plugins.registries.settings import SettingRegistry
from headrace.plugins.registries.targets import TargetRegistry
from headrace.plugins.registries.translations import TranslationRegistry
from headrace.plugins.reserved import OFFICIAL
from headrace.records import dataclass
from headrace.settings import DISABLE_PLUGINS, unknown_variables

if TYPE_CHECKING:
    import pluggy

    from headrace.device_name import DeviceName
    from headrace.runtime.devices.device import Device
    from headrace.runtime.devices.limits import MachineLimits
    from headrace.runtime.runtime import Runtime
    from headrace.session.config import Config

# What is collected where all faults of plugins are to show.
_ASKED = (
    *("settings", "devices", "kernels", "gradients", "passes", "names", "targets", "commands"),
    "translations",
    "ops_declared",
)


@dataclass(frozen=True, slots=True)
class PluginState:
    """What became of a plugin.

    Attributes:
        name: The name of its entry point.
        module: The module that the entry point names.
        distribution: Name and version of its package.
        state: "loaded", "disabled", "broken" where nothing of it is used, or "faulty" where a
            function of it failed that was needed for a part of it only.
        reason: Why it is broken or faulty.
        overrides: What it replaces of other packages, on request.
    """

    name: str
    module: str
    distribution: str
    state: str
    reason: str = ""
    overrides: tuple[str, ...] = ()


class PluginHost:
    """One set of loaded plugins with the registries that they fill.

    The process has one (``host()``); tests build others.
    """

    def __init__(self, entries: Iterable[Entry] | None = None) -> None:
        """Make a host of plugins that are not loaded yet; all that are installed if None."""
        self._collection = Collection(entries)

    # -- plugins

    @cached_property
    def manager(self) -> pluggy.PluginManager:
        """The pluggy manager with every plugin that loads."""
        return self._collection.manager

    def with_plugin(self, name: str, module: str) -> PluginHost:
        """Return a host of the same plugins, but that the one called ``name`` is ``module``."""
        from importlib.metadata import EntryPoint

        others = [entry for entry in self._collection.found() if entry.name != name]
        replaced: list[Entry] = [*others, EntryPoint(name, module, GROUP)]
        return PluginHost(sorted(replaced, key=lambda e: (e.name, e.value)))

    def plugins(self) -> list[PluginState]:
        """Return every plugin found, with its state."""
        self.manager  # noqa: B018 - loads the plugins
        disabled = DISABLE_PLUGINS.read()
        states = []
        for entry in self._collection.found():
            name = entry.name
            state, reason = "loaded", ""
            if name in disabled:
                state, reason = "disabled", "named in HEADRACE_DISABLE_PLUGINS"
            elif name in self._collection.failures:
                state, reason = "broken", self._collection.failures[name]
            elif name in self._collection.warnings:
                state, reason = "faulty", "; ".join(self._collection.warnings[name])
            overrides = tuple(str(r) for r in self.replacements if r.by.name == name)
            states.append(
                PluginState(name, entry.value, str(Distribution(entry)), state, reason, overrides)
            )
        return states

    def broken(self) -> str:
        """Return one line per broken plugin, for messages; empty where none is."""
        self.manager  # noqa: B018 - loads the plugins
        lines = [
            f"  plugin {name!r} is installed but broken: {reason}"
            for name, reason in self._collection.failures.items()
        ]
        lines += [
            f"  plugin {name!r} is faulty: {reason}"
            for name, reasons in self._collection.warnings.items()
            for reason in reasons
        ]
        return "\n".join(lines)

    # -- registries

    @cached_property
    def kernels(self) -> KernelRegistry:
        """All kernels."""
        # Who provides a kind of devices has a right to kernels for it.
        self.devices  # noqa: B018
        return self._collection.collect(KernelRegistry)

    @cached_property
    def gradients(self) -> GradientRegistry:
        """All gradient rules."""
        return self._collection.collect(GradientRegistry)

    @cached_property
    def devices(self) -> DeviceRegistry:
        """All kinds of devices."""
        return self._collection.collect(DeviceRegistry)

    @cached_property
    def names(self) -> NameRegistry:
        """All public names."""
        return self._collection.collect(NameRegistry)

    @cached_property
    def passes(self) -> PassRegistry:
        """What plugins add to the passes."""
        return self._collection.collect(PassRegistry)

    @cached_property
    def settings(self) -> SettingRegistry:
        """All settings that plugins read from the environment."""
        return self._collection.collect(SettingRegistry)

    @cached_property
    def environment_checked(self) -> bool:
        """True, once variables that are probably misspelt are warned about."""
        for name, meant in unknown_variables(self.settings.variables()).items():
            if meant:
                warnings.warn(
                    f"nothing reads the environment variable {name}; did you mean {meant}?",
                    RuntimeWarning,
                    stacklevel=2,
                )
        return True

    @cached_property
    def targets(self) -> TargetRegistry:
        """All schemes of session targets."""
        return self._collection.collect(TargetRegistry)

    @cached_property
    def commands(self) -> CommandRegistry:
        """All commands that plugins add to ``python -m headrace``."""
        return self._collection.collect(CommandRegistry)

    @cached_property
    def translations(self) -> TranslationRegistry:
        """All translations of TensorFlow's ops."""
        return self._collection.collect(TranslationRegistry)

    @cached_property
    def ops_declared(self) -> bool:
        """True, once every plugin's ops are declared."""
        self._collection.declare_ops()
        return True

    def declare_ops(self) -> str:
        """Let every plugin declare its ops, once; return what is broken, for messages."""
        self.ops_declared  # noqa: B018 - declares them
        return self.broken()

    def ask_all(self) -> None:
        """Call every hook and count all devices, as only then all faults of plugins show."""
        for asked in _ASKED:
            getattr(self, asked)
        for kind in self.devices:
            self.count_devices(kind)

    @property
    def replacements(self) -> list[Replacement]:
        """What plugins replace on request, in the registries collected so far."""
        return self._collection.replacements

    # -- what registries hold, called

    def count_devices(self, kind: DeviceKind) -> tuple[int, str]:
        """Return how many devices of a kind there are, and why there are none.

        A plugin that cannot tell is noted as faulty, and has none.
        """
        provider = self.devices.provider(kind.name, kind)
        count, why, fault = calls.count(kind, provider)
        if fault:
            self._collection.warn(provider.name, fault)
        return count, why

    def open_device(self, name: DeviceName) -> Device:
        """Open a device.

        Raises:
            HeadraceError: if its plugin does not; names the plugin.
        """
        kind = self.devices.get(name.kind or "")
        if kind is None:
            raise PluginError(f"no plugin provides devices of the kind {name.kind!r}")
        return calls.open_device(kind, name, self.devices.provider(kind.name, kind))

    def limits(self, name: DeviceName, threads: int | None) -> MachineLimits | None:
        """Return what a device of this process can do, None where it does not say.

        Raises:
            HeadraceError: if its plugin does not open it, or fails to tell; names the plugin.
        """
        device, kind = self.open_device(name), self.devices.get(name.kind or "")
        assert kind is not None  # or it would not have opened
        return calls.limits(device, threads, self.devices.provider(kind.name, kind))

    def resolve_name(self, name: str) -> Any:
        """Return the object behind the public name ``headrace.<name>``.

        Raises:
            AttributeError: if no plugin provides it; names the package that would.
            PluginError: if the plugin that provides it does not have it.
        """
        target = self.names.get(name)
        if target is None:
            raise AttributeError(self._no_name(name))
        provider = self.names.provider(name, self.names.offers[name][0])
        return _imported(target, f"headrace.{name} is provided by {provider}")

    def resolve_command(self, name: str) -> Callable[[list[str]], int]:
        """Return the function that runs a command which a plugin adds.

        Raises:
            PluginError: if no plugin adds it, or the plugin that does lacks it.
        """
        command = self.commands.get(name)
        if command is None:
            raise PluginError(f"no plugin adds the command {name!r}")
        provider = self.commands.provider(name, command)
        run: Callable[[list[str]], int] = _imported(
            command.target, f"the command {name!r} is added by {provider}"
        )
        return run

    def _no_name(self, name: str) -> str:
        package = OFFICIAL.get(name)
        broken = self.broken()
        tail = f"\n{broken}" if broken else ""
        if package is None:
            around, _, last = f"headrace.{name}".rpartition(".")
            return f"{around} has no attribute {last!r}{tail}"
        return f"headrace.{name} is provided by the package {package}: pip install {package}{tail}"

    def open_runtime(self, target: str, config: Config) -> Runtime:
        """Return the runtime behind a session's target.

        Raises:
            TargetError: if no plugin knows the target.
        """
        scheme = target.partition(":")[0]
        found = self.targets.get(scheme)
        if found is None:
            known = ", ".join(f"{name}:..." for name in sorted(self.targets)) or "none"
            broken = self.broken()
            raise TargetError(
                f"no plugin opens the session target {target!r} (targets that are: {known}); "
                "targets of MPI clusters come from hr.dist.Cluster(...).target and need the "
                "package headrace-dist-mpi" + (f"\n{broken}" if broken else "")
            )
        return calls.open_runtime(found, target, config, self.targets.provider(scheme, found))

    def diagnoses(self) -> list[dict[str, object]]:
        """Return what each plugin tells the doctor."""
        return [
            report
            for plugin, function in self._collection.implementations(
                "headrace_diagnose", broken=True
            )
            if (report := calls.diagnose(function, self._collection.provider(plugin)))
        ]


def _imported(target: str, what: str) -> Any:
    """Return what ``"module"`` or ``"module:attribute"`` names."""
    module, _, attribute = target.partition(":")
    try:
        found = importlib.import_module(module)
    except (Exception, SystemExit) as error:
        raise PluginError(
            f"{what}, in {module}, which fails to import: {described(error)}"
        ) from error
    if not attribute:
        return found
    try:
        return getattr(found, attribute)
    except AttributeError as error:
        raise PluginError(f"{what}, in {module}, which has no {attribute!r}") from error


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


@contextmanager
def use_host(plugins: PluginHost) -> Iterator[PluginHost]:
    """Let the process have another host for a while: for tests, in one thread."""
    global _HOST
    before, _HOST = _HOST, plugins
    try:
        yield plugins
    finally:
        _HOST = before
