"""The plugin host: hooks to implement, registries to fill, and what the host collected."""

from headrace.plugins.contract import (
    API_VERSION,
)
from headrace.plugins.error_attribution import (
    blamed,
    origin,
)
from headrace.plugins.hookspecs import (
    hookimpl,
)
from headrace.plugins.host import (
    PluginHost,
    PluginState,
    host,
    use_host,
)
from headrace.plugins.namespaces import (
    added_names,
)
from headrace.plugins.ownership import (
    Provider,
    Replacement,
)
from headrace.plugins.registries.commands import CommandRegistry
from headrace.plugins.registries.devices import DeviceRegistry
from headrace.plugins.registries.gradients import GradientRegistry
from headrace.plugins.registries.kernels import KernelRegistry
from headrace.plugins.registries.names import NameRegistry
from headrace.plugins.registries.settings import (
    SettingRegistry,
)
from headrace.plugins.registries.targets import TargetRegistry

__all__ = [
    "API_VERSION",
    "CommandRegistry",
    "DeviceRegistry",
    "GradientRegistry",
    "KernelRegistry",
    "NameRegistry",
    "PluginHost",
    "PluginState",
    "Provider",
    "Replacement",
    "SettingRegistry",
    "TargetRegistry",
    "added_names",
    "blamed",
    "hookimpl",
    "host",
    "origin",
    "use_host",
]
