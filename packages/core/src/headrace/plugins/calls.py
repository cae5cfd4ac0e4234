"""Calls of what plugins registered: counts, factories, openers, diagnoses.

What such a function raises or returns wrongly is told with the plugin and the line, and reaches
only those who use it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.errors import ConfigError, HeadraceError, PluginError, shown
from headrace.plugins.error_attribution import blamed, noted, origin
from headrace.plugins.ownership import Provider
from headrace.runtime.devices.capabilities import LimitedDevice

if TYPE_CHECKING:
    from headrace.device_name import DeviceName
    from headrace.plugins.registries.devices import DeviceKind
    from headrace.plugins.registries.targets import Target
    from headrace.runtime.devices.device import Device
    from headrace.runtime.devices.limits import MachineLimits
    from headrace.runtime.runtime import Runtime
    from headrace.session.config import Config

# A plugin that calls ``sys.exit`` must not end the program of who does not use it.
_FAILURES = (Exception, SystemExit)
# More than any machine has: a number above is a mistake, and all would be listed.
_MOST_DEVICES = 4096

# What the runtime takes of a device before it runs anything there.
_DEVICE = ("name", "xp", "from_host", "to_host", "activate")
_LIMITS = ("bytes_per_second", "flops_per_second", "seconds")
_RUNTIME = ("machine", "register", "close")


def count(kind: DeviceKind, provider: Provider) -> tuple[int, str, str]:
    """Return how many devices of a kind there are, why there are none, and what went wrong."""
    try:
        found = operator.index(kind.count())
        if not 0 <= found <= _MOST_DEVICES:
            raise ValueError(f"it returned {found}")
    except ConfigError:
        # What the environment says is no fault of the plugin.
        raise
    except _FAILURES as error:
        what = f"the count of device kind {kind.name!r}"
        fault = _line(blamed(error, kind.count, provider, what))
        return 0, fault, fault
    if found:
        return found, "", ""
    try:
        why = kind.why_none()
        if not isinstance(why, str):
            raise TypeError(f"it returned {why!r}, which is no text")
    except _FAILURES as error:
        what = f"why_none of device kind {kind.name!r}"
        fault = _line(blamed(error, kind.why_none, provider, what))
        return 0, fault, fault
    return 0, why or "none found", ""


def open_device(kind: DeviceKind, name: DeviceName, provider: Provider) -> Device:
    """Return a device of a kind, open.

    Raises:
        HeadraceError: if the factory raises one, or fails, or returns no device.
    """
    device: Any = _called(
        lambda: kind.factory(name), kind.factory, provider, f"opening the device {str(name)!r}"
    )
    _check_has(device, _DEVICE, "device", kind.factory, provider)
    return device  # type: ignore[no-any-return]


def limits(device: Device, threads: int | None, provider: Provider) -> MachineLimits | None:
    """Return what a device can do, None where it does not say.

    Raises:
        HeadraceError: if the device fails to tell, or returns something else.
    """
    if not isinstance(device, LimitedDevice):
        return None
    found: Any = _called(
        lambda: device.limits(threads), device.limits, provider, f"the limits of {device.name}"
    )
    _check_has(found, _LIMITS, "statement of limits", device.limits, provider)
    return found  # type: ignore[no-any-return]


def open_runtime(target: Target, text: str, config: Config, provider: Provider) -> Runtime:
    """Return the runtime behind a session target.

    Raises:
        HeadraceError: if the opener raises one, or fails, or returns no runtime.
    """
    runtime: Any = _called(
        lambda: target.open(text, config), target.open, provider, f"opening the target {text!r}"
    )
    _check_has(runtime, _RUNTIME, "runtime", target.open, provider)
    return runtime  # type: ignore[no-any-return]


def diagnose(function: Callable[[], object], provider: Provider) -> dict[str, object]:
    """Return what a plugin tells the doctor; its failure is a problem that it has."""
    try:
        report = function()
        if report is None:
            return {}
        if not isinstance(report, dict):
            raise TypeError(f"it returned {shown(report)}, which is no dictionary")
        return report
    except _FAILURES as error:
        problem = str(blamed(error, function, provider, "headrace_diagnose"))
        return {"title": provider.name, "problems": [(problem, _fix(provider))]}


def _line(error: PluginError) -> str:
    return ", ".join(line.strip() for line in str(error).splitlines())


def _fix(provider: Provider) -> str:
    package = provider.distribution.partition(" ")[0] or provider.name
    return f"fix or upgrade {package}, or set HEADRACE_DISABLE_PLUGINS={provider.name}"


def _called(
    call: Callable[[], Any], function: Callable[..., Any], provider: Provider, what: str
) -> Any:
    try:
        return call()
    except HeadraceError as error:
        if not provider.own:
            noted(error, function, provider)
        raise
    except _FAILURES as error:
        raise blamed(error, function, provider, what) from error


def _check_has(
    value: object, names: tuple[str, ...], what: str, function: object, provider: Provider
) -> None:
    missing = [name for name in names if not hasattr(value, name)]
    if missing:
        nothing = PluginError()
        raise PluginError(
            f"{type(value).__name__!r} is no {what}: it has no {', '.join(missing)}\n"
            f"  {origin(nothing, function, provider)}"
        )
