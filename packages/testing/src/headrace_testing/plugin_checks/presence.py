"""Whether a plugin is in force: installed, loaded, and registered as a whole."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import headrace as hr
from headrace.extend.ops import OPS
from headrace.extend.plugins import PluginState, host
from headrace_testing.failure import ConformanceError
from headrace_testing.plugin_checks.offers import Offers, offers_of


def require_loaded(name: str) -> Offers:
    """Return what a plugin offers, once it is sure that the host uses it.

    Raises:
        ConformanceError: if it is not installed, is disabled or broken, or offers nothing.
    """
    states = _states()
    mine = [state for state in states if state.name == name]
    if not mine:
        there = ", ".join(sorted(state.name for state in states)) or "none"
        raise ConformanceError(
            f"plugin {name!r} is not installed: no entry point of the group 'headrace' has this "
            f"name (there are: {there}); pip install its package, with -e while you work on it"
        )
    for state in mine:
        if state.state != "loaded":
            raise ConformanceError(
                f"plugin {name!r} ({state.module} of {state.distribution}) is {state.state}: "
                f"{state.reason}"
            )
    offers = offers_of(name)
    if offers.empty:
        raise ConformanceError(
            f"plugin {name!r} is loaded, but offers nothing: no hook of {mine[0].module} is marked "
            "with @hookimpl, and its package declares no op"
        )
    return offers


def check_registered(offers: Offers) -> None:
    """Check that the host holds everything that the plugin offers.

    Raises:
        ConformanceError: if a part is missing or is another plugin's; names each.
    """
    missing = [
        *_missing_kernels(offers),
        *_missing_rules(offers),
        *_missing_devices(offers),
        *_missing_names(offers),
        *_missing_rewrites(offers),
    ]
    if missing:
        raise ConformanceError(
            f"plugin {offers.name!r} is half registered:\n" + "\n".join(f"  {m}" for m in missing)
        )


def _states() -> list[PluginState]:
    """Return the states of all plugins, with everything asked for that could fail."""
    host().ask_all()
    return host().plugins()


def _missing_kernels(offers: Offers) -> list[str]:
    lost = []
    for kind, kernel in offers.kernels:
        if OPS.get(kernel.op) is None:
            lost.append(f"the kernel at {kernel.where} is for {kernel.op}, which nobody declares")
        elif kernel not in host().kernels.candidates(kernel.op, kind, None):
            lost.append(f"the kernel of {kernel.op} on {kind} at {kernel.where} is not in force")
    served = {kernel.op for _, kernel in offers.kernels}
    for schema in offers.ops:
        if schema.type not in served and not schema.builtin and not schema.expression:
            elsewhere = host().kernels.devices_of(schema.type)
            if not elsewhere:
                lost.append(f"{schema.type} has no kernel on any device: register its table")
    return lost


def _missing_rules(offers: Offers) -> list[str]:
    return [
        f"the gradient rule of {op} is not in force: {_place(host().gradients.get(op))} is"
        for op, rule in offers.rules
        if host().gradients.get(op) is not rule
    ]


def _missing_devices(offers: Offers) -> list[str]:
    lost = []
    for device in offers.devices:
        kind = host().devices.get(device.kind)
        if kind is None or kind.factory is not device.factory:
            owner = "nobody's" if kind is None else f"that of {kind.where}"
            lost.append(f"the device kind {device.kind!r} is not the plugin's, but {owner}")
    return lost


def _missing_names(offers: Offers) -> list[str]:
    lost = []
    for name, target in offers.names:
        module, _, attribute = target.partition(":")
        try:
            found: Any = import_module(module)
            for part in attribute.split(".") if attribute else ():
                found = getattr(found, part)
            public = getattr(hr, name)
        except (ImportError, AttributeError) as error:
            lost.append(f"headrace.{name} cannot be had: {error}")
            continue
        if public is not found:
            lost.append(f"headrace.{name} is not {target}, but {_place(public)}")
    return lost


def _missing_rewrites(offers: Offers) -> list[str]:
    added = host().passes.added
    there = {rule.name for rule in added.rules} | {found.name for found in added.passes}
    return [
        f"the rule or pass {name!r} is not in force"
        for name in (*offers.rewrites, *offers.passes)
        if name not in there
    ]


def _place(found: Any) -> str:
    if found is None:
        return "none"
    module = getattr(found, "__module__", None) or getattr(found, "__name__", type(found).__name__)
    name = getattr(found, "__qualname__", "")
    return f"{module}.{name}" if name else str(module)
