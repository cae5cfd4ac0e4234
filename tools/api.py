"""The public API as text: every public name with its signature, a file per module.

``python tools/api.py`` says what differs from the files of ``tests/contracts/api``, and
``python tools/api.py --write`` brings them up to date. ``python tools/api.py --release``, a step of
a release, then copies them to ``tests/contracts/api/released``: of what differs from there,
``tests/contracts/test_api.py`` asks for entries of the changelog.

Public is what the modules below hold under a name without a leading underscore: what ``__all__``
lists where there is one, else the classes and functions. A class is told with its bases, and with
the methods and properties that it does not have from another public class. Annotations are left
out: they change more often than what a caller may write.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import re
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "tests" / "contracts" / "api"
RELEASED = FOLDER / "released"
# What users and authors of plugins import. Modules among their public names are added.
ROOTS = (
    "headrace",
    "headrace.errors",
    "headrace.extend",
    "headrace.rnn_cell",
    "headrace.testing",
    "headrace_autodiff",
    "headrace_data",
    "headrace_io",
    "headrace_io.files.gfile",
    "headrace_io.files.io_gfile",
    "headrace_io.resource_loader",
    "headrace_mpi",
    "headrace_serve",
    "headrace_tensorflow",
    "headrace_train",
    "headrace_train.layers",
    "headrace_train.metrics",
    "headrace_train.test",
    "headrace_train.summary",
)
# Every module of these packages is public.
OPEN_PACKAGES = ("headrace.extend",)


def modules() -> list[str]:
    """Return the names of the public modules, sorted."""
    found: dict[str, ModuleType] = {}
    waiting = list(ROOTS)
    for package in OPEN_PACKAGES:
        folder = Path(str(importlib.import_module(package).__file__)).parent
        names = (path.stem for path in folder.glob("*.py"))
        waiting += [f"{package}.{name}" for name in names if not name.startswith("_")]
    while waiting:
        module = importlib.import_module(waiting.pop())
        if module.__name__ not in found:
            found[module.__name__] = module
            values = public(module).values()
            waiting += [value.__name__ for value in values if isinstance(value, ModuleType)]
    return sorted(found)


def public(module: ModuleType) -> dict[str, Any]:
    """Return the public names of a module with what they stand for."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return {name: getattr(module, name) for name in sorted(listed)}
    return {
        name: value
        for name, value in sorted(vars(module).items())
        if not name.startswith("_") and callable(value) and is_ours(value)
    }


def lines_of(module: str, told: dict[type, str], classes: set[type]) -> list[str]:
    """Return a module's part of the API, a line per name.

    Args:
        module: its name.
        told: classes that were told, with where; this module's are added, and told once.
        classes: all public classes; what one of them inherits from another is not told again.
    """
    lines: list[str] = []
    for name, value in public(importlib.import_module(module)).items():
        if isinstance(value, ModuleType):
            lines.append(f"{name}: module {value.__name__}")
        elif inspect.isclass(value) and not is_ours(value):
            lines.append(f"class {name} = {value.__module__}.{value.__qualname__}")
        elif inspect.isclass(value):
            where = told.setdefault(value, f"{module}.{name}")
            again = where != f"{module}.{name}"
            lines += [f"class {name} = {where}"] if again else class_lines(name, value, classes)
        elif callable(value) and is_ours(value):
            lines.append(name + signature_of(value))
        else:
            lines.append(f"{name}: {type(value).__name__}")
    return lines


def is_ours(value: Any) -> bool:
    """Whether a class or function is Headrace's; signatures of others depend on their versions."""
    return (getattr(value, "__module__", None) or "").startswith("headrace")


def class_lines(name: str, cls: type, classes: set[type]) -> list[str]:
    """Return the lines of a class: what makes it, its bases, and its public members."""
    bases = ", ".join(base.__name__ for base in cls.__bases__ if base is not object)
    lines = [f"class {name}{signature_of(cls)}" + (f" < {bases}" if bases else "")]
    ours = [base for base in cls.__mro__ if is_ours(base) and base not in classes - {cls}]
    members = {member for base in ours for member in vars(base) if not member.startswith("_")}
    for member in sorted(members):
        value = inspect.getattr_static(cls, member)
        if isinstance(value, enum.Enum) or not (
            callable(value) or isinstance(value, (property, classmethod, staticmethod))
        ):
            lines.append(f"  {name}.{member}")
        elif isinstance(value, property):
            lines.append(f"  {name}.{member}: property")
        else:
            lines.append(f"  {name}.{member}{signature_of(getattr(cls, member))}")
    return lines


def signature_of(value: Any) -> str:
    """Return a signature without its annotations, ``(...)`` for what has none."""
    # What Python says of its own classes depends on its version.
    if inspect.isclass(value):
        inherited = not inspect.isfunction(value.__init__)
        if issubclass(value, enum.Enum) or (inherited and issubclass(value, BaseException)):
            return "(...)"
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    bare = signature.replace(
        parameters=[
            parameter.replace(annotation=inspect.Parameter.empty)
            for parameter in signature.parameters.values()
        ],
        return_annotation=inspect.Signature.empty,
    )
    return re.sub(r" at 0x[0-9a-f]+", "", str(bare))


def api() -> dict[str, list[str]]:
    """Return the lines of every public module."""
    names = modules()
    values = [value for name in names for value in public(importlib.import_module(name)).values()]
    classes = {value for value in values if inspect.isclass(value)}
    told: dict[type, str] = {}
    return {name: lines_of(name, told, classes) for name in names}


def stored(folder: Path) -> dict[str, list[str]]:
    """Return the lines of the files in a folder."""
    return {
        path.stem: path.read_text(encoding="utf-8").splitlines()
        for path in sorted(folder.glob("*.txt"))
    }


def write(folder: Path, lines: dict[str, list[str]]) -> None:
    """Replace the files of a folder."""
    for path in folder.glob("*.txt"):
        path.unlink()
    folder.mkdir(parents=True, exist_ok=True)
    for module, text in lines.items():
        (folder / f"{module}.txt").write_text("".join(f"{line}\n" for line in text))


def difference(before: dict[str, list[str]], after: dict[str, list[str]]) -> list[str]:
    """Return the lines that are gone, with ``-``, and the new ones, with ``+``, by module."""
    changed = []
    for module in sorted({*before, *after}):
        old, new = before.get(module, []), after.get(module, [])
        changed += [f"{module}: - {line}" for line in old if line not in new]
        changed += [f"{module}: + {line}" for line in new if line not in old]
    return changed


def unexplained(changed: list[str], entries: list[str]) -> list[str]:
    """Return the changes that no entry of the changelog names.

    An entry names a change by the public name or the last part of it (``matmul``, ``hr.nn.relu``),
    or by the module or a package around it (not ``headrace``), which stand for all that is in them.

    Args:
        changed: what ``difference`` returns.
        entries: texts of entries, with names in backquotes.
    """
    words = {word for entry in entries for word in re.findall(r"`([^`\s(]+)[^`]*`", entry)}
    named = {word.replace("hr.", "headrace.", 1) if word[:3] == "hr." else word for word in words}
    named |= {word.rpartition(".")[2] for word in named if not word.startswith("headrace.extend.")}
    missing = []
    for line in changed:
        module, _, declared = line.partition(": ")
        name = re.match(r"[-+]\s+(?:class )?([\w.]+)", declared)
        assert name is not None, line
        owner = name[1].partition(".")[0]
        parts = module.split(".")
        around = {".".join(parts[:count]) for count in range(2, len(parts))}
        words = {module, name[1], owner, f"{module}.{owner}", f"{module}.{name[1]}"}
        if not named & (words | around):
            missing.append(line)
    return missing


def main(arguments: list[str]) -> int:
    """Tell, write or release; the exit status says whether the files are up to date."""
    current = api()
    if "--write" in arguments:
        write(FOLDER, current)
    changed = difference(stored(FOLDER), current)
    if "--release" in arguments and not changed:
        shutil.rmtree(RELEASED, ignore_errors=True)
        write(RELEASED, current)
    sys.stdout.writelines(f"{line}\n" for line in changed)
    return bool(changed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
