"""Every hook that plugin packages may implement.

Hooks run at set-up only and hand over a registry to fill. A plugin's module is named by an entry
point of the group ``headrace`` and must be cheap to import: it imports heavy libraries inside
the functions that need them. A hook that raises is recorded, and named in the error of whoever
needed what it would have brought.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from headrace.plugins.registries import (
        DeviceRegistry,
        GradientRegistry,
        KernelRegistry,
        NameRegistry,
    )
    from headrace.runtime.runtime import Runtime
    from headrace.session.config import Config

PROJECT = "headrace"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def headrace_declare_ops() -> None:
    """Import the modules that declare the plugin's ops.

    Called once per process, when an op is looked up that is not declared yet, as happens when a
    graph is read from a document, and by the commands that list ops.
    """


@hookspec
def headrace_register_names(registry: NameRegistry) -> None:
    """Add public names under ``headrace``, each as ``"module"`` or ``"module:attribute"``.

    Called once, when a name is looked up that core does not have. Nothing is imported before the
    name itself is used.
    """


@hookspec
def headrace_register_devices(registry: DeviceRegistry) -> None:
    """Add kinds of devices.

    Called once, before the first session. Must not touch hardware: it passes functions, which run
    when devices are listed and when one is first used.
    """


@hookspec
def headrace_register_kernels(registry: KernelRegistry) -> None:
    """Add tables of kernels for kinds of devices.

    Called once, before the first session. May import kernel modules, but no GPU library.
    """


@hookspec
def headrace_register_gradients(registry: GradientRegistry) -> None:
    """Add tables of gradient rules.

    Called once, when gradients are first asked for.
    """


@hookspec(firstresult=True)
def headrace_open_runtime(target: str, config: Config) -> Runtime | None:
    """Return the runtime behind a session's target, or None where it is another plugin's.

    Called once per session with a target that is not empty. What it raises reaches the user.
    """


@hookspec
def headrace_diagnose() -> dict[str, object] | None:
    """Return facts and problems for ``python -m headrace doctor``.

    Called by that command only. The dictionary has a ``"title"``, any facts, and a list
    ``"problems"`` of (problem, mend) pairs.
    """
