"""A plugin of pytest: with one line of configuration it checks plugins of Headrace.

``headrace_plugins = ["fancy"]`` in pytest's configuration, or ``pytest --headrace-plugin fancy``,
adds one test for each check of the plugin. Its samples come from a function of ``conftest.py``::

    def pytest_headrace_rows(plugin):
        return [Sample("Cube", [uniform((3, 4), -2, 2)], oracle=lambda x: x**3)]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from headrace_testing.failure import ConformanceError, SkipCheck
from headrace_testing.plugin_checks.cases import plugin_cases


class Hooks:
    """What a ``conftest.py`` may say of the plugins under test."""

    @pytest.hookspec
    def pytest_headrace_rows(self, plugin: str) -> Sequence[Any] | None:
        """Return samples, reject rows, scenarios and rule cases of a plugin."""

    @pytest.hookspec
    def pytest_headrace_without(self, plugin: str) -> dict[str, str] | None:
        """Return ops of a plugin that cannot be called alone, each with the reason."""


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Let ``conftest.py`` give rows."""
    pluginmanager.add_hookspecs(Hooks)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option and the setting that name plugins."""
    group = parser.getgroup("headrace")
    group.addoption(
        "--headrace-plugin",
        action="append",
        default=[],
        metavar="NAME",
        help="check this installed plugin of Headrace; repeatable",
    )
    parser.addini("headrace_plugins", "plugins of Headrace to check", type="args", default=[])


def plugins_under_test(config: pytest.Config) -> list[str]:
    """Return the plugins that the configuration and the command line name."""
    named = [*config.getini("headrace_plugins"), *config.getoption("--headrace-plugin")]
    return list(dict.fromkeys(named))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add the checks of the plugins under test to what was collected."""
    for name in plugins_under_test(config):
        collector = PluginCollector.from_parent(
            session, name=f"plugin {name}", nodeid=f"plugin {name}"
        )
        items.extend(collector.collect())


class PluginCollector(pytest.Collector):
    """The checks of one plugin."""

    def collect(self) -> Iterator[pytest.Item]:
        """Make an item of each check; of what keeps a plugin from being checked, one that fails."""
        plugin = self.name.removeprefix("plugin ")
        hook = self.config.hook
        given = hook.pytest_headrace_rows(plugin=plugin)
        rows = [row for listed in given for row in listed or ()]
        reasons = hook.pytest_headrace_without(plugin=plugin)
        without = {op: why for table in reasons for op, why in (table or {}).items()}
        try:
            made = plugin_cases(plugin, rows, without=without)
        except ConformanceError as error:
            yield PluginItem.from_parent(self, name="in force", run=_failing(error))
            return
        for case in made:
            yield PluginItem.from_parent(self, name=case.name, run=case.run)


class PluginItem(pytest.Item):
    """One check of a plugin."""

    def __init__(self, *, run: Callable[[], None], **others: Any) -> None:
        super().__init__(**others)
        self.run = run

    def runtest(self) -> None:
        """Make the check."""
        try:
            self.run()
        except SkipCheck as reason:
            pytest.skip(str(reason))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show what is wrong with the plugin, not where the kit found it."""
        if isinstance(excinfo.value, ConformanceError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Any, int | None, str]:
        """Name the check in reports."""
        return self.path, None, f"{self.parent.name if self.parent else ''}: {self.name}"


def _failing(error: Exception) -> Callable[[], None]:
    def run() -> None:
        raise error

    return run
