"""``python -m headrace doctor``: what is there, what is wrong, and how to fix it."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distributions, version
from typing import Any

from headrace.cli.tables import facts, print_json
from headrace.device_name import DeviceName
from headrace.plugins.host import PluginHost, host
from headrace.runtime.engine import LOCAL_TASK
from headrace.settings import Setting, unknown_variables

OFFICIAL = (
    "core",
    "autodiff",
    "backend-cpu",
    "backend-cuda",
    "data",
    "dist-mpi",
    "io",
    "testing",
    "train",
)
LIBRARIES = ("numpy", "ml_dtypes", "pluggy")


@dataclass
class Section:
    """A part of the report.

    Attributes:
        title: What it is about.
        facts: Names and values.
        problems: What is wrong, each with how to fix it.
    """

    title: str
    facts: dict[str, Any] = field(default_factory=dict)
    problems: list[tuple[str, str]] = field(default_factory=list)


def run(*, as_json: bool = False) -> int:
    """Print the report; return 1 if there are problems."""
    sections = examine()
    problems = [(s.title, *problem) for s in sections for problem in s.problems]
    if as_json:
        print_json(
            {
                "ok": not problems,
                "sections": [{"title": s.title, "facts": s.facts} for s in sections],
                "problems": [
                    {"section": title, "problem": problem, "fix": fix}
                    for title, problem, fix in problems
                ],
            }
        )
        return 1 if problems else 0
    for section in sections:
        print("\n".join([section.title, *facts(section.facts), ""]))
    if not problems:
        print("no problems found")
    for i, (title, problem, fix) in enumerate(problems, 1):
        print(f"problem {i}, {title}: {problem}\n  fix: {fix}")
    return 1 if problems else 0


def examine() -> list[Section]:
    """Return all sections of the report."""
    plugins = host()
    settings = plugins.settings.by_package()
    sections = [_python(), _packages(), _environment(settings)]
    if any(setting.is_wrong() for several in settings.values() for setting in several):
        # The environment's section tells; without it devices cannot be looked at.
        return sections
    devices = _guarded("devices", lambda: _devices(plugins))
    others = [_diagnosis(report) for report in plugins.diagnoses()]
    # Last, because a plugin may show itself to be broken only when it is asked for something.
    return [*sections, _guarded("plugins", lambda: _plugins(plugins)), devices, *others]


def _guarded(title: str, examine_part: Callable[[], Section]) -> Section:
    try:
        return examine_part()
    except Exception as error:
        # The doctor reports on what is broken, and must outlive all of it.
        problem = f"the examination failed: {type(error).__name__}: {error}"
        return Section(title, {}, [(problem, "report this, with the whole output")])


def _python() -> Section:
    return Section(
        "python",
        {
            "version": f"{platform.python_version()} ({platform.python_implementation()})",
            "platform": platform.platform(),
            "executable": sys.executable,
            "cores": os.cpu_count(),
        },
    )


def _packages() -> Section:
    section = Section("packages")
    for part in OFFICIAL:
        section.facts[f"headrace-{part}"] = _version(f"headrace-{part}") or "not installed"
    third = {
        f"{d.name} {d.version}"
        for d in distributions()
        if any(e.group == "headrace" for e in d.entry_points) and d.name not in section.facts
    }
    if third:
        section.facts["other plugin packages"] = sorted(third)
    for library in LIBRARIES:
        section.facts[library] = _version(library)
    own = _version("headrace-core")
    for part in OFFICIAL[1:]:
        other = _version(f"headrace-{part}")
        if own is not None and other is not None and _release(own) != _release(other):
            what = f"headrace-core is {own}, headrace-{part} is {other}: they are no set"
            fix = f"pip install --upgrade headrace-core headrace-{part}"
            section.problems.append((what, fix))
    return section


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _release(text: str) -> list[str]:
    """Return the part of a version that compatible packages share."""
    return text.split(".")[:2]


def _environment(settings: Mapping[str, Sequence[Setting[Any]]]) -> Section:
    section = Section("environment")
    known: list[str] = []
    for package, several in settings.items():
        for setting in several:
            name = setting.variable
            known.append(name)
            section.facts[name] = f"{os.environ.get(name, 'not set')} ({package})"
            problem = setting.problem()
            if problem:
                section.problems.append((problem, "set it to a value that will do, or unset it"))
    for name, meant in unknown_variables(known).items():
        section.facts[name] = f"{os.environ[name]} (nothing reads it)"
        if meant:
            section.problems.append((f"nothing reads {name}", f"did you mean {meant}?"))
    return section


def _devices(plugins: PluginHost) -> Section:
    section = Section("devices")
    for kind in plugins.devices:
        try:
            count, why_none = plugins.count_devices(kind)
            if not count:
                section.facts[kind.name] = f"none: {why_none}"
            for i in range(count):
                name = DeviceName(LOCAL_TASK.job, LOCAL_TASK.task, kind.name, i)
                section.facts[f"{kind.name}:{i}"] = _brief(plugins.open_device(name).describe())
        except Exception as error:
            # Whatever a driver or a plugin raises is what the doctor is asked for.
            section.problems.append(
                (f"{kind.name} fails: {type(error).__name__}: {error}", f"see {kind.where}")
            )
    if not section.facts and not section.problems:
        section.facts["none"] = "no plugin provides any"
    if plugins.devices.get("cpu") is None:
        section.problems.append(
            (
                "there is no cpu device, which every session needs",
                "pip install headrace-backend-cpu",
            )
        )
    return section


def _brief(description: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in description.items())


def _plugins(plugins: PluginHost) -> Section:
    plugins.ask_all()
    section = Section("plugins")
    for plugin in plugins.plugins():
        text = f"{plugin.state} ({plugin.distribution})"
        section.facts[plugin.name] = text + (f": {plugin.reason}" if plugin.reason else "")
        for i, override in enumerate(plugin.overrides, 1):
            section.facts[f"{plugin.name}, replacement {i}"] = override
        if plugin.state in ("broken", "faulty"):
            package = plugin.distribution.split()[0]
            what = f"plugin {plugin.name!r} is {plugin.state}: {plugin.reason}"
            fix = f"fix or upgrade {package}, or set HEADRACE_DISABLE_PLUGINS={plugin.name}"
            section.problems.append((what, fix))
    if not section.facts:
        section.facts["none"] = "nothing but core is installed"
    return section


def _diagnosis(report: Mapping[str, object]) -> Section:
    """Return what a plugin reports as a section."""
    content = dict(report)
    section = Section(str(content.pop("title", "plugin")))
    problems = content.pop("problems", None)
    section.facts = {str(name): value for name, value in content.items()}
    for entry in problems if isinstance(problems, list | tuple) else ():
        what, fix = entry if isinstance(entry, tuple) and len(entry) == 2 else (entry, "see above")
        section.problems.append((str(what), str(fix)))
    return section
