"""Policies: where operations run and how much state devices hold, said apart from the model.

A policy is a list of rules over the names of operations, and limits of memory. It is written in
the program, or in a file of TOML::

    [[place]]
    operations = "embedding/*"                       # or a list of patterns
    device = ["/job:ps/task:0", "/job:ps/task:1"]    # or one device
    optional = true                                  # there may be no such operation

    [memory]
    "/job:ps/task:0/device:cpu:0" = "2 GiB"
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from headrace.arguments import items
from headrace.device_name import DeviceName
from headrace.errors import ConfigError, PlacementError, listing, shown
from headrace.records import dataclass

_UNITS = {"": 1, **{f"{p}b": 1000**i for i, p in enumerate(("", "k", "m", "g", "t"))}}
_UNITS |= {f"{p}ib": 1024**i for i, p in enumerate("kmgt", 1)}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")


@dataclass(frozen=True, slots=True, init=False)
class PlacementRule:
    """Where operations go whose names match.

    Attributes:
        operations: Patterns of names as of files: ``*`` is any text, also with slashes in it, ``?``
            one character, ``[ab]`` one of several.
        devices: The devices, each whole or in part. What a device leaves open stays as the model
            asks; an empty one drops what the model asks. Of several, a variable goes to the one
            with the fewest bytes of variables that has room, all else to the first.
        optional: Whether there may be no such operation.
    """

    operations: tuple[str, ...]
    devices: tuple[DeviceName, ...]
    optional: bool

    def __init__(
        self,
        operations: str | Iterable[str],
        device: Any,
        *,
        optional: bool = False,
    ) -> None:
        """Make a rule.

        Args:
            operations: A pattern, or several.
            device: A device as ``hr.device`` takes it, or a list of devices.
            optional: As the attribute.

        Raises:
            ConfigError: if something is of the wrong kind, or no name of a device.
        """
        given: Any = operations
        listed = isinstance(given, Iterable) and not isinstance(given, str)
        patterns = tuple(items(given, "operations")) if listed else (given,)
        if not patterns or any(type(p) is not str or not p for p in patterns):
            raise ConfigError(f"a rule needs patterns of names, got {shown(operations)}")
        several = isinstance(device, list | tuple)
        devices = tuple(_device(one) for one in (device if several else (device,)))
        if not devices:
            raise ConfigError(f"the rule for {listing(patterns)} names no device")
        if not isinstance(optional, bool):
            raise ConfigError(f"optional must be true or false, got {shown(optional)}")
        object.__setattr__(self, "operations", patterns)
        object.__setattr__(self, "devices", devices)
        object.__setattr__(self, "optional", optional)

    def matches(self, name: str) -> bool:
        """Whether it is about operations of a name."""
        return any(fnmatchcase(name, pattern) for pattern in self.operations)

    def __str__(self) -> str:
        """Return the patterns as messages show them."""
        return listing(repr(pattern) for pattern in self.operations)


@dataclass(frozen=True, slots=True, init=False)
class PlacementPolicy:
    """Where the operations of a program run, over what the program itself asks for.

    The first rule that matches any of several operations that share a device, as a variable and
    all that uses it do, says where all of them go.

    Example:
        ::

            policy = hr.PlacementPolicy(
                [("embedding/*", "/job:ps/task:0"), ("tower_*", "/job:worker/task:0")],
                memory={"/job:ps/task:0/device:cpu:0": "2 GiB"},
            )
            with hr.Session(target, config=hr.Config(placement=policy)) as session:
                ...

    Attributes:
        rules: The rules, the first of which counts.
        memory: Pairs of a device, whole or in part, and the bytes of variables that each such
            device holds at most.
        source: What messages call the policy: the name of its file.
    """

    rules: tuple[PlacementRule, ...]
    memory: tuple[tuple[DeviceName, int], ...]
    source: str

    def __init__(
        self,
        rules: Iterable[Any] = (),
        memory: Mapping[str, int | str] | None = None,
        *,
        source: str = "the placement policy",
    ) -> None:
        """Make a policy.

        Args:
            rules: Rules, or pairs of patterns and devices as ``hr.PlacementRule`` takes them.
            memory: For devices the bytes of variables that each holds at most: a number, or a text
                such as ``"512 MiB"`` or ``"2 GB"``.
            source: As the attribute.

        Raises:
            ConfigError: if something is of the wrong kind, or no name of a device.
        """
        if isinstance(rules, str) or not isinstance(rules, Iterable):
            raise ConfigError(f"rules must be a list of hr.PlacementRule, got {shown(rules)}")
        if memory is not None and not isinstance(memory, Mapping):
            raise ConfigError(f"memory must be sizes by device, got {shown(memory)}")
        limits = [(_device(name), _bytes(name, size)) for name, size in (memory or {}).items()]
        object.__setattr__(self, "rules", tuple(map(_rule, rules)))
        object.__setattr__(self, "memory", tuple(limits))
        object.__setattr__(self, "source", source)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> PlacementPolicy:
        """Read a policy from a file of TOML.

        Args:
            path: The file: tables ``[[place]]``, each with ``operations``, ``device`` and perhaps
                ``optional``, and one table ``[memory]`` of sizes by device.

        Raises:
            ConfigError: if the file cannot be read, is not TOML, or is no policy.
        """
        # lazy: few programs have a policy
        import tomllib
        from pathlib import Path

        name = os.fsdecode(path)
        try:
            data = tomllib.loads(Path(name).read_bytes().decode())
        except OSError as error:
            raise ConfigError(f"cannot read the placement policy: {error}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"the placement policy {name} is not TOML: {error}") from error
        except ValueError as error:
            # NUL, or half of a surrogate pair.
            raise ConfigError(f"{shown(name)} names no file with a policy: {error}") from error
        _known(data, ("place", "memory"), name)
        tables = data.get("place", [])
        if not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables):
            raise ConfigError(f"{name}: write each rule as a table [[place]]")
        rules = []
        for number, table in enumerate(tables, 1):
            where = f"{name}, rule {number}"
            _known(table, ("operations", "device", "optional"), where)
            missing = [key for key in ("operations", "device") if key not in table]
            if missing:
                raise ConfigError(f"{where} needs {' and '.join(map(repr, missing))}")
            try:
                rules.append(PlacementRule(**table))
            except ConfigError as error:
                raise ConfigError(f"{where}: {error}") from None
        try:
            return cls(rules, data.get("memory"), source=name)
        except ConfigError as error:
            raise ConfigError(f"{name}: {error}") from None

    def rule_of(self, names: Iterable[str]) -> PlacementRule | None:
        """Return the first rule that matches any of the names."""
        names = list(names)
        return next((r for r in self.rules if any(map(r.matches, names))), None)

    def limit_of(self, device: DeviceName) -> int | None:
        """Return the bytes of variables that a device holds at most, None for no limit."""
        limits = [size for name, size in self.memory if name.matches(device)]
        return min(limits) if limits else None


def as_policy(placement: Any) -> PlacementPolicy | None:
    """Return what ``Config(placement=...)`` says: a policy, the name of its file, or None.

    Raises:
        ConfigError: if it is something else, or no file with a policy.
    """
    if placement is None or isinstance(placement, PlacementPolicy):
        return placement
    if isinstance(placement, str | os.PathLike):
        return PlacementPolicy.from_file(placement)
    raise ConfigError(
        f"placement must be an hr.PlacementPolicy or the name of its file, got {shown(placement)}"
    )


def _rule(rule: Any) -> PlacementRule:
    if isinstance(rule, PlacementRule):
        return rule
    if not isinstance(rule, tuple | list) or len(rule) != 2:
        raise ConfigError(
            f"a rule is an hr.PlacementRule, or a pair of patterns and device, got {shown(rule)}"
        )
    return PlacementRule(*rule)


def _device(name: Any) -> DeviceName:
    try:
        return DeviceName.parse(name)
    except PlacementError as error:
        raise ConfigError(str(error)) from None


def _bytes(device: str, size: Any) -> int:
    match = _SIZE.fullmatch(size) if isinstance(size, str) else None
    unit = _UNITS.get(match[2].lower()) if match else None
    if match is not None and unit is not None:
        return int(float(match[1]) * unit)
    if isinstance(size, int) and not isinstance(size, bool) and size >= 0:
        return size
    raise ConfigError(
        f"the memory of {shown(device)} must be a number of bytes, or a text such as '512 MiB' or "
        f"'2 GB', got {shown(size)}"
    )


def _known(table: Mapping[str, Any], keys: tuple[str, ...], where: str) -> None:
    unknown = [key for key in table if key not in keys]
    if unknown:
        raise ConfigError(
            f"{where}: there is no {unknown[0]!r} in a placement policy, only {listing(keys)}"
        )
