"""Every hook that plugin packages may implement.

Hooks run at set-up only and hand over a registry to fill. A plugin's module is named by an entry
point of the group ``headrace`` and must be cheap to import: it imports heavy libraries inside
the functions that need them. A plugin registers all or nothing: where one hook raises, or takes
what another package owns, nothing of the plugin stays, and the error of whoever needed what it
would have brought names it. Each hook gets a registry of its own, closed when it returns.

The hooks are part of the interface that ``headrace.extend.API_VERSION`` counts; see ``contract``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from headrace.plugins.registries.commands import CommandRegistry
    from headrace.plugins.registries.devices import DeviceRegistry
    from headrace.plugins.registries.gradients import GradientRegistry
    from headrace.plugins.registries.kernels import KernelRegistry
    from headrace.plugins.registries.names import NameRegistry
    from headrace.plugins.registries.passes import PassRegistry
    from headrace.plugins.registries.settings import SettingRegistry
    from headrace.plugins.registries.targets import TargetRegistry
    from headrace.plugins.registries.translations import TranslationRegistry

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
def headrace_register_settings(registry: SettingRegistry) -> None:
    """Add the settings that the plugin reads from the environment.

    Called once, before the first session, and by the commands that show settings. May import no
    more than the module that declares them.
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


@hookspec
def headrace_register_passes(registry: PassRegistry) -> None:
    """Add passes, and rules to the simplifier's table.

    Called once, before the first session. What they raise when they run on a step reaches whoever
    runs the step, with the name of the plugin.
    """


@hookspec
def headrace_register_targets(registry: TargetRegistry) -> None:
    """Add schemes of session targets, each with the function that opens a runtime.

    Called once, when a session with a target that is not empty is made.
    """


@hookspec
def headrace_register_commands(registry: CommandRegistry) -> None:
    """Add commands to ``python -m headrace``, each as ``"module:function"``.

    Called once, by the command line, for a word that is none of core's commands, and by ``--help``.
    Nothing is imported before the command itself is called.
    """


@hookspec
def headrace_register_translations(registry: TranslationRegistry) -> None:
    """Add tables of translations of TensorFlow's ops, for graphs that it wrote.

    Called once, when such a graph is first read. May import the modules that hold the rows.
    """


@hookspec
def headrace_diagnose() -> dict[str, object] | None:
    """Return facts and problems for ``python -m headrace doctor``.

    Called by that command only. The dictionary has a ``"title"``, any facts, and a list
    ``"problems"`` of (problem, fix) pairs.
    """
