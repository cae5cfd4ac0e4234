"""The registry of settings that plugins read from the environment."""

from __future__ import annotations

import sys
from typing import Any

from headrace.errors import PluginError
from headrace.plugins.ownership import CORE, Claim, Provider
from headrace.plugins.registries.registry import Registry
from headrace.records import dataclass
from headrace.settings import CORE_SETTINGS, Setting

_OF_CORE = {setting.variable for setting in CORE_SETTINGS}
_FINAL = "a variable has one reader; fix the plugin: read a variable of its own"


@dataclass(frozen=True, slots=True)
class OfferedSetting:
    """A setting that a plugin reads.

    Attributes:
        setting: The setting.
        where: Module and line that registered it.
        override: Empty: nobody reads the variables of others.
    """

    setting: Setting[Any]
    where: str
    override: str = ""


class SettingRegistry(Registry[OfferedSetting]):
    """Settings that plugins read from the environment, by variable."""

    hook = "headrace_register_settings"

    def add(self, *settings: Setting[Any]) -> None:
        """Add settings.

        Raises:
            PluginError: if one is none, or was added already.
        """
        frame = sys._getframe(1)
        where = f"{frame.f_globals.get('__name__', '?')}:{frame.f_lineno}"
        for setting in settings:
            if not isinstance(setting, Setting):
                raise PluginError(f"a setting is a headrace.extend.settings.Setting, got {setting}")
            if setting.variable in self.offers:
                raise PluginError(f"the setting {setting.variable} is added twice; remove one")
            self._put(setting.variable, OfferedSetting(setting, where))

    def _thing(self, key: str) -> str:
        return f"the setting {key}"

    def _claim(self, provider: Provider, offer: OfferedSetting) -> Claim:
        return Claim(provider, offer.where, final=_FINAL)

    def _declared(self, key: str) -> Claim | None:
        return Claim(CORE, "headrace.settings", final=_FINAL) if key in _OF_CORE else None

    def variables(self) -> list[str]:
        """Return the environment variables of the settings of core and of plugins."""
        return [*(setting.variable for setting in CORE_SETTINGS), *self.offers]

    def by_package(self) -> dict[str, list[Setting[Any]]]:
        """Return the settings of core and of plugins by the package that reads them."""
        found: dict[str, list[Setting[Any]]] = {"headrace-core": list(CORE_SETTINGS)}
        for variable, (offer, *_) in self.offers.items():
            package = self.provider(variable, offer).project
            found.setdefault(package, []).append(offer.setting)
        return found
