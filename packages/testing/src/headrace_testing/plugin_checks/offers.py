"""What a plugin offers: what its hooks hand over when they are asked alone, without the host."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import headrace as hr
from headrace.extend.kernels import Kernel
from headrace.extend.ops import OPS, OpSchema
from headrace.extend.plugins import host
from headrace_testing.failure import ConformanceError


@dataclass(frozen=True, slots=True)
class OfferedDevice:
    """A kind of devices that a plugin adds.

    Attributes:
        kind: Its name.
        count: Returns how many there are.
        factory: Opens one.
        dtypes: Names of the dtypes that it holds; None for all.
        why_none: Returns why there are none.
    """

    kind: str
    count: Callable[[], Any]
    factory: Callable[..., Any]
    dtypes: frozenset[str] | None
    why_none: Callable[[], str]


@dataclass(frozen=True, slots=True)
class Offers:
    """What a plugin offers.

    Attributes:
        name: The plugin.
        ops: The ops that its package declares.
        kernels: Kinds of devices, and the kernels for them.
        rules: Names of ops, and their gradient rules.
        devices: Kinds of devices.
        names: Public names, and what they stand for.
        rewrites: Names of rewrite rules.
        passes: Names of passes.
        other: Whether there is more, which is not checked: session targets, diagnoses.
    """

    name: str
    ops: tuple[OpSchema, ...]
    kernels: tuple[tuple[str, Kernel], ...]
    rules: tuple[tuple[str, Callable[..., Any]], ...]
    devices: tuple[OfferedDevice, ...]
    names: tuple[tuple[str, str], ...]
    rewrites: tuple[str, ...]
    passes: tuple[str, ...]
    other: bool

    @property
    def empty(self) -> bool:
        """Whether there is nothing at all."""
        return not (
            (self.ops or self.kernels or self.rules or self.devices or self.names)
            or (self.rewrites or self.passes or self.other)
        )

    def kinds_of(self, op: str) -> list[str]:
        """Return the kinds of devices for which it has a kernel of an op."""
        return sorted({kind for kind, kernel in self.kernels if kernel.op == op})


class _Recorder:
    """Stands for a registry, and remembers what is added to it."""

    def __init__(self) -> None:
        self.added: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def add(self, *args: Any, **kwargs: Any) -> None:
        """Remember a call."""
        self.added.append((args, kwargs))

    add_pass = add_rule = add

    def __getattr__(self, name: str) -> Callable[..., None]:
        """Take what else may be asked of a registry, which is no offer: to lend kernels, say."""
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None

    def add_rules(self, rules: Iterable[Any]) -> None:
        """Remember the rules of a table."""
        for rule in rules:
            self.add(rule)


def offers_of(name: str) -> Offers:
    """Ask the hooks of a plugin that is loaded what they offer.

    Raises:
        ConformanceError: if one raises.
    """
    module = host().manager.get_plugin(name)
    host().declare_ops()
    _asked(name, module, "headrace_declare_ops")
    root = getattr(module, "__name__", type(module).__module__).partition(".")[0]
    kernels = [
        (str(args[0]), kernel)
        for args, _ in _recorded(name, module, "headrace_register_kernels")
        for kernel in args[1]
    ]
    rules = [
        (rule.op, rule.function)
        for args, _ in _recorded(name, module, "headrace_register_gradients")
        for rule in args[0]
    ]
    devices = [
        _device(*args, **kwargs)
        for args, kwargs in _recorded(name, module, "headrace_register_devices")
    ]
    names = [
        (str(args[0]), str(args[1]))
        for args, _ in _recorded(name, module, "headrace_register_names")
    ]
    added = _recorded(name, module, "headrace_register_passes")
    targets = _recorded(name, module, "headrace_register_targets")
    ops = [schema for schema in OPS if schema.function.__module__.partition(".")[0] == root]
    return Offers(
        name,
        tuple(ops),
        tuple(kernels),
        tuple(rules),
        tuple(devices),
        tuple(names),
        tuple(str(args[0].name) for args, _ in added if len(args) == 1),
        tuple(_pass_name(*args, **kwargs) for args, kwargs in added if len(args) > 1),
        bool(targets) or hasattr(module, "headrace_diagnose"),
    )


def _pass_name(stage: Any, function: Any, *, name: str = "") -> str:
    return name or str(function.__name__).strip("_").replace("_", "-")


def _device(
    kind: str,
    *,
    count: Callable[[], int],
    factory: Callable[..., Any],
    dtypes: Any = None,
    why_none: Callable[[], str] = str,
    **others: Any,
) -> OfferedDevice:
    held = None if dtypes is None else frozenset(hr.as_dtype(d).name for d in dtypes)
    return OfferedDevice(kind, count, factory, held, why_none)


def _recorded(name: str, module: Any, hook: str) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    recorder = _Recorder()
    _asked(name, module, hook, registry=recorder)
    return recorder.added


def _asked(name: str, module: Any, hook: str, **arguments: Any) -> None:
    function = getattr(module, hook, None)
    if function is None:
        return
    try:
        function(**arguments)
    except Exception as error:
        raise ConformanceError(
            f"plugin {name!r}: {hook} raises {type(error).__name__}: {error}"
        ) from error
