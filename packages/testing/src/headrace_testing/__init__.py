"""The conformance kit: tables of op samples, and the checks that follow from them.

A plugin's author writes rows, and gets for each of them forward parity with a float64 oracle for
every dtype, agreement of inferred and produced shapes, scalar, empty, strided, read-only,
constant and folded inputs, extremes where the op is total, a round trip through a graph document,
and first and second derivatives against central differences::

    from headrace.testing import Sample, conformance, uniform

    test_conformance = conformance([
        Sample("Cube", [uniform((3, 4), -2, 2)], oracle=lambda x: x**3),
    ])

``cases`` returns the same checks as plain objects, for those who run them without pytest.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace_testing.case import Case as Case
    from headrace_testing.case import cases as cases
    from headrace_testing.case import conformance as conformance
    from headrace_testing.failure import ConformanceError as ConformanceError
    from headrace_testing.failure import SkipCheck as SkipCheck
    from headrace_testing.inputs import Input as Input
    from headrace_testing.inputs import array as array
    from headrace_testing.inputs import booleans as booleans
    from headrace_testing.inputs import distinct as distinct
    from headrace_testing.inputs import integers as integers
    from headrace_testing.inputs import strings as strings
    from headrace_testing.inputs import uniform as uniform
    from headrace_testing.inputs import whole as whole
    from headrace_testing.kernels import uses_kernel as uses_kernel
    from headrace_testing.plugin_checks.cases import PluginCase as PluginCase
    from headrace_testing.plugin_checks.cases import PluginReport as PluginReport
    from headrace_testing.plugin_checks.cases import check_plugin as check_plugin
    from headrace_testing.plugin_checks.cases import plugin_cases as plugin_cases
    from headrace_testing.plugin_checks.scenarios import Scenario as Scenario
    from headrace_testing.rules import RuleCase as RuleCase
    from headrace_testing.rules import check_rule as check_rule
    from headrace_testing.rules import rule_case as rule_case
    from headrace_testing.sample import Reject as Reject
    from headrace_testing.sample import Sample as Sample

__all__ = [
    "Case",
    "ConformanceError",
    "Input",
    "PluginCase",
    "PluginReport",
    "Reject",
    "RuleCase",
    "Sample",
    "Scenario",
    "SkipCheck",
    "array",
    "booleans",
    "cases",
    "check_plugin",
    "check_rule",
    "conformance",
    "distinct",
    "integers",
    "plugin_cases",
    "rule_case",
    "strings",
    "uniform",
    "uses_kernel",
    "whole",
]

# Module -> what it has of these. They are imported when they are first named: every process that
# looks for plugins loads this package.
_MODULES = {
    "case": (
        "Case",
        "cases",
        "conformance",
    ),
    "failure": (
        "ConformanceError",
        "SkipCheck",
    ),
    "inputs": (
        "Input",
        "array",
        "booleans",
        "distinct",
        "integers",
        "strings",
        "uniform",
        "whole",
    ),
    "kernels": ("uses_kernel",),
    "plugin_checks.cases": (
        "PluginCase",
        "PluginReport",
        "check_plugin",
        "plugin_cases",
    ),
    "plugin_checks.scenarios": ("Scenario",),
    "rules": (
        "RuleCase",
        "check_rule",
        "rule_case",
    ),
    "sample": (
        "Reject",
        "Sample",
    ),
}
_FOUND_IN = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    module = _FOUND_IN.get(name)
    if module is None:
        raise AttributeError(f"headrace.testing has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"headrace_testing.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
