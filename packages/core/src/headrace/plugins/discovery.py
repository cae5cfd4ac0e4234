"""Discovery: plugins are loaded, asked for what they bring, and joined in registries.

A plugin is in or out as a whole. Where its module does not load, one of its hooks raises, or it
takes without asking what another package owns, nothing of it stays in any registry.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.graph.schema import OPS
from headrace.interrupts import uninterrupted
from headrace.plugins.contract import check_version
from headrace.plugins.entry_points import Entry, found_entries
from headrace.plugins.error_attribution import described, line_of_error
from headrace.plugins.ownership import (
    CORE_PACKAGE,
    OWN_PACKAGES,
    Distribution,
    Provider,
    Replacement,
    package_of,
)
from headrace.plugins.registries.commands import CommandRegistry
from headrace.plugins.registries.devices import DeviceRegistry
from headrace.plugins.registries.gradients import GradientRegistry
from headrace.plugins.registries.kernels import KernelRegistry
from headrace.plugins.registries.names import NameRegistry
from headrace.plugins.registries.passes import PassRegistry
from headrace.plugins.registries.registry import Registry
from headrace.plugins.registries.settings import SettingRegistry
from headrace.plugins.registries.targets import TargetRegistry
from headrace.plugins.registries.translations import TranslationRegistry
from headrace.plugins.reserved import reserved
from headrace.settings import DISABLE_PLUGINS

if TYPE_CHECKING:
    import pluggy


GROUP = "headrace"
R = TypeVar("R", bound=Registry[Any])


class Collection:
    """The plugins that load, and what they gave when they were asked.

    Attributes:
        failures: Why plugins are out as a whole, by name.
        warnings: What else went wrong with plugins, by name.
    """

    def __init__(self, entries: Iterable[Entry] | None = None) -> None:
        self._entries = entries
        self._providers: dict[str, Provider] = {}
        # Why plugins are out as a whole, and what else went wrong.
        self.failures: dict[str, str] = {}
        self.warnings: dict[str, list[str]] = {}
        self._declared: dict[str, set[str]] = {}
        # For each hook the joined registry, and what each plugin gave that was asked.
        self._collected: dict[str, tuple[Registry[Any], dict[str, Registry[Any]]]] = {}
        # The hooks whose joined registry is not what all gave, and who declared ops in one.
        self._unsettled: set[str] = set()
        self._declares: set[str] = set()
        self._lock = threading.RLock()

    @cached_property
    def manager(self) -> pluggy.PluginManager:
        """The pluggy manager with every plugin that loads."""
        return self._loaded()

    @uninterrupted
    def _loaded(self) -> pluggy.PluginManager:
        import pluggy

        # lazy: pluggy takes a tenth of a second, and sessions find plugins when they need one
        from headrace.plugins import hookspecs

        with self._lock:
            manager = pluggy.PluginManager(hookspecs.PROJECT)
            manager.add_hookspecs(hookspecs)
            disabled = DISABLE_PLUGINS.read()
            wanted = [entry for entry in self.found() if entry.name not in disabled]
            for entry in wanted:
                self._providers.setdefault(entry.name, _provider(entry))
            for entry in wanted:
                self._load(manager, entry)
            return manager

    def found(self) -> list[Entry]:
        """Return the entry points of all plugins, by name, also of those that do not load."""
        if self._entries is not None:
            return list(self._entries)
        return sorted(found_entries(GROUP), key=lambda e: (e.name, e.value))

    def _load(self, manager: pluggy.PluginManager, entry: Entry) -> None:
        if manager.has_plugin(entry.name):
            others = [e for e in self.found() if e.name == entry.name]
            names = " and ".join(f"{e.value} ({Distribution(e)})" for e in others)
            self.warn(
                entry.name, f"two plugins are called {entry.name!r}: {names}; the first one is used"
            )
            return
        plugin: Any = None
        before = {schema.type for schema in OPS}
        try:
            plugin = entry.load()
            check_version(plugin, lambda: str(Distribution(entry)).split()[0])
            manager.register(plugin, name=entry.name)
            manager.check_pending()
            self._note_ops(entry.name, before)
        except (Exception, SystemExit) as error:
            # Any failure becomes part of the message of whoever needs what the plugin brings.
            if plugin is not None and manager.is_registered(plugin):
                manager.unregister(plugin)
            self._note_ops(entry.name, before)
            self._evict(entry.name, described(error))

    def provider(self, plugin: str) -> Provider:
        """Return who a plugin is, for messages."""
        return self._providers.get(plugin, Provider(plugin, ""))

    def warn(self, plugin: str, reason: str) -> None:
        """Note that something of a plugin, which is in, went wrong."""
        known = self.warnings.setdefault(plugin, [])
        if reason not in known:
            known.append(reason)

    # -- all or nothing

    def _note_ops(self, plugin: str, before: set[str]) -> None:
        """Note which ops a plugin declared, which has just run."""
        provider = self.provider(plugin)
        others = {p.package for p in self._providers.values()} | OWN_PACKAGES
        self._declared.setdefault(plugin, set()).update(
            schema.type
            for schema in OPS
            if schema.type not in before
            and package_of(schema.where) not in others - {provider.package}
        )

    def _evict(self, plugin: str, reason: str) -> None:
        """Put a plugin out; whoever calls this settles what was collected."""
        self.failures.setdefault(plugin, reason)
        self._unsettled.update(self._collected)
        package = self.provider(plugin).package
        if package not in OWN_PACKAGES:
            declared = {s.type for s in OPS if package_of(s.where) == package}
            OPS.forget(declared | self._declared.get(plugin, set()))

    def _settle(self) -> None:
        """Join what plugins gave, and put out those that take what others own."""
        devices: Any = self._collected[DeviceRegistry.hook][0]
        owners: dict[str, Callable[[Any], tuple[str, ...]]] = {
            KernelRegistry.hook: lambda key: (self._op_owner(key[0]), devices.owner(key[1])),
            GradientRegistry.hook: lambda key: (self._op_owner(key),),
        }
        while self._unsettled:
            unsettled, self._unsettled = self._unsettled, set()
            for hook, (registry, given) in self._collected.items():
                if hook not in unsettled:
                    continue
                present = [
                    (self.provider(name), own)
                    for name, own in given.items()
                    if name not in self.failures
                ]
                # Where nobody declared a thing, Headrace's own packages come before others.
                refused = registry.join(present, owners.get(hook, lambda key: (CORE_PACKAGE,)))
                for provider, reason in refused.items():
                    self._evict(provider.name, reason)

    def _op_owner(self, op: str) -> str:
        """Return the import package that declares an op."""
        for plugin, types in self._declared.items():
            if op in types:
                return self.provider(plugin).package
        schema = OPS.get(op)
        return package_of(schema.where) if schema is not None else ""

    @uninterrupted
    def collect(self, kind: type[R]) -> R:
        """Let every plugin fill a registry of its own, and return what they are together."""
        with self._lock:
            self._ask_others()
            self._ask(kind.hook)
            self._settle()
            registry: Any = self._collected[kind.hook][0]
            return registry  # type: ignore[no-any-return]

    def _ask_others(self) -> None:
        """Call all hooks of the plugins that are not Headrace's own, once.

        Their hooks are cheap, and what one of them takes that is not its own shows before anything
        else of the plugin is used. Our own take long, and are asked when they are needed.
        """
        if self._collected:
            return
        self.manager  # noqa: B018 - loads the plugins
        rules = self._providers.get("autodiff")
        registries: tuple[Registry[Any], ...] = (
            DeviceRegistry(),
            KernelRegistry(),
            GradientRegistry(rules),
            PassRegistry(),
            SettingRegistry(),
            NameRegistry(reserved),
            TargetRegistry(),
            CommandRegistry(),
            TranslationRegistry(),
        )
        for registry in registries:
            registry.close()
            self._collected[registry.hook] = registry, {}
        self._ask_for_ops(own=False)
        for registry in registries:
            self._ask(registry.hook, own=False)

    def _ask(self, hook: str, *, own: bool = True) -> None:
        """Call a hook of the plugins that were not asked yet; not of our own unless ``own``."""
        registry, given = self._collected[hook]
        for plugin, function in self.implementations(hook):
            if plugin in given or (self.provider(plugin).own and not own):
                continue
            filled = type(registry)()
            try:
                function(registry=filled)
            except (Exception, SystemExit) as error:
                self._evict(plugin, _of_hook(hook, function, error))
            else:
                given[plugin] = filled.close()
                self._unsettled.add(hook)
                if hook == DeviceRegistry.hook:
                    # Who has a kind of devices has a right to kernels for it.
                    self._unsettled.add(KernelRegistry.hook)

    def _ask_for_ops(self, *, own: bool = True) -> None:
        for plugin, function in self.implementations("headrace_declare_ops"):
            if plugin in self._declares or (self.provider(plugin).own and not own):
                continue
            self._declares.add(plugin)
            before = {schema.type for schema in OPS}
            try:
                function()
                self._note_ops(plugin, before)
            except (Exception, SystemExit) as error:
                self._note_ops(plugin, before)
                self._evict(plugin, _of_hook("headrace_declare_ops", function, error))

    def implementations(
        self, hook: str, *, broken: bool = False
    ) -> list[tuple[str, Callable[..., Any]]]:
        """Return who implements a hook; of plugins that are out as well where ``broken``."""
        caller = getattr(self.manager.hook, hook)
        # Sorted by name: what plugins add does not depend on the order of installation.
        return sorted(
            (
                (impl.plugin_name, impl.function)
                for impl in caller.get_hookimpls()
                if broken or impl.plugin_name not in self.failures
            ),
            key=lambda pair: pair[0],
        )

    @uninterrupted
    def declare_ops(self) -> None:
        """Let every plugin declare its ops that was not asked to."""
        with self._lock:
            self._ask_others()
            self._ask_for_ops()
            self._settle()

    @property
    def replacements(self) -> list[Replacement]:
        """What plugins replace on request, in the registries collected so far."""
        return [r for registry, _ in self._collected.values() for r in registry.replacements]


def _of_hook(hook: str, function: Callable[..., Any], error: BaseException) -> str:
    return f"{hook}: {described(error)} (at {line_of_error(error, function)})"


def _provider(entry: Entry) -> Provider:
    module = entry.value.partition(":")[0]
    return Provider(entry.name, package_of(module.strip()), Distribution(entry))
