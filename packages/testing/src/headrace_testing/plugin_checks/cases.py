"""Every check of a plugin, as cases with names; and all of them in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from headrace.errors import NoKernelError
from headrace.extend.ops import OPS
from headrace.extend.plugins import PluginHost, host, use_host
from headrace_testing.case import Case, cases
from headrace_testing.failure import ConformanceError, SkipCheck
from headrace_testing.plugin_checks.devices import (
    check_count,
    check_interface,
    check_samples,
    check_sessions,
    check_transfers,
)
from headrace_testing.plugin_checks.fake_devices import count_of, host_with_stand_in
from headrace_testing.plugin_checks.generate import generated_rows
from headrace_testing.plugin_checks.gradient_rules import check_gradient_rule
from headrace_testing.plugin_checks.kernels import check_alone
from headrace_testing.plugin_checks.offers import Offers
from headrace_testing.plugin_checks.presence import check_registered, require_loaded
from headrace_testing.plugin_checks.rewrites import check_on_samples, check_shown
from headrace_testing.plugin_checks.runs import check_executors, check_steps
from headrace_testing.plugin_checks.scenarios import Scenario, check_scenario
from headrace_testing.rules import RuleCase, check_rule
from headrace_testing.sample import Reject, Row, Sample

# Of an op that another package declares, and of which the author gave none.
SAMPLES_OF_AN_OP = 3

PluginRow = Row | Scenario | RuleCase


@dataclass(frozen=True, slots=True)
class PluginCase:
    """One check of a plugin.

    Attributes:
        name: Unique among those of the plugin.
        run: Makes the check; raises ``ConformanceError`` or ``SkipCheck``.
    """

    name: str
    run: Callable[[], None]


@dataclass(slots=True)
class PluginReport:
    """What came of the checks of a plugin.

    Attributes:
        plugin: Its name.
        passed: Names of checks.
        skipped: Names of checks, and why they could not be made.
        failed: Names of checks, and what is wrong.
        without_oracle: Ops whose values nothing was compared with but themselves.
    """

    plugin: str
    passed: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    without_oracle: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        count = len(self.passed) + len(self.skipped) + len(self.failed)
        sums = f"{len(self.passed)} passed, {len(self.skipped)} skipped, {len(self.failed)} failed"
        lines = [f"plugin {self.plugin!r}: {count} checks, {sums}"]
        if self.without_oracle:
            listed = ", ".join(self.without_oracle)
            lines.append(f"ops without an oracle, compared with themselves in float64: {listed}")
        lines += [f"{name}\n{text}" for name, text in self.failed.items()]
        return "\n".join(lines)


def check_plugin(
    name: str,
    rows: Iterable[PluginRow] = (),
    *,
    without: Mapping[str, str] | None = None,
    ops: Sequence[str] | None = None,
) -> PluginReport:
    """Check an installed plugin, all that it brings.

    Args:
        name: The plugin: the name of its entry point.
        rows: Samples and reject rows of its ops, scenarios for what keeps state, and rule
            cases for its rewrite rules. For an op without samples inputs are made from the
            declaration.
        without: Ops that cannot be called alone, each with the reason: no inputs are made.
        ops: The only ops to look at; None for all.

    Returns:
        What was checked; print it to see which ops have no oracle.

    Raises:
        ConformanceError: if the plugin is not in force, or fails a check; tells of all failures.
    """
    report = PluginReport(name)
    made = plugin_cases(name, rows, without=without, ops=ops, report=report)
    for case in made:
        try:
            case.run()
        except SkipCheck as reason:
            report.skipped[case.name] = str(reason)
        except Exception as error:
            # What is no finding of the kit is one all the same: nothing may fail here.
            told = str(error) if isinstance(error, ConformanceError) else repr(error)
            report.failed[case.name] = told
        else:
            report.passed.append(case.name)
    if report.failed:
        raise ConformanceError(str(report))
    return report


def plugin_cases(
    name: str,
    rows: Iterable[PluginRow] = (),
    *,
    without: Mapping[str, str] | None = None,
    ops: Sequence[str] | None = None,
    report: PluginReport | None = None,
) -> list[PluginCase]:
    """Return the checks of a plugin; see ``check_plugin`` for the arguments.

    Raises:
        ConformanceError: if the plugin is not installed, is disabled, or is broken.
    """
    offers = require_loaded(name)
    listed = list(rows)
    samples = [row for row in listed if isinstance(row, Sample | Reject)]
    scenarios = [row for row in listed if isinstance(row, Scenario)]
    mine = {schema.type for schema in offers.ops}
    _check_names(offers, samples, dict(without or {}), ops)
    made = [PluginCase("registered", partial(check_registered, offers))]
    for device in offers.devices:
        for kind, check in (
            ("count", check_count),
            ("interface", check_interface),
            ("transfers", check_transfers),
            ("sessions", check_sessions),
            ("samples", check_samples),
        ):
            made.append(PluginCase(f"device-{device.kind}-{kind}", partial(check, device)))
    for schema in offers.ops:
        if ops is not None and schema.type not in ops:
            continue
        own = [row for row in samples if row.op == schema.type]
        told = schema.type in (without or {}) or any(schema.type in s.ops for s in scenarios)
        if not any(isinstance(row, Sample) for row in own) and not told:
            own += _made_up(offers, schema.type)
            if report is not None:
                report.without_oracle.append(schema.type)
        made += _cases_of(offers, schema.type, own)
    # Kernels and rules for what another package declares are checked on the samples of that op.
    touched = [*(k.op for _, k in offers.kernels), *(op for op, _ in offers.rules)]
    for op in dict.fromkeys([*(row.op for row in samples), *touched]):
        if op not in mine and (ops is None or op in ops):
            own = [row for row in samples if row.op == op]
            made += _cases_of(offers, op, own or _samples_of_core(op))
    for scenario in scenarios:
        if ops is None or set(scenario.ops) & set(ops):
            made.append(PluginCase(f"scenario-{scenario.name}", partial(check_scenario, scenario)))
    shown = [row for row in listed if isinstance(row, RuleCase)]
    if ops is None or set(offers.rewrites) & set(ops):
        made += _rewrite_cases(offers, shown, [row for row in samples if isinstance(row, Sample)])
    return made


def _rewrite_cases(
    offers: Offers, shown: Sequence[RuleCase], samples: Sequence[Sample]
) -> list[PluginCase]:
    """Return the checks of rewrite rules and passes."""
    made = [
        PluginCase(f"rule-{case.rule}-{i}", partial(check_rule, case))
        for i, case in enumerate(shown)
    ]
    made += [
        PluginCase(f"rule-{name}-shown", partial(check_shown, name, shown))
        for name in offers.rewrites
    ]
    if offers.rewrites or offers.passes:
        made.append(PluginCase("rewrites-on-samples", partial(check_on_samples, samples)))
    return made


def _check_names(
    offers: Offers, samples: Sequence[Row], without: Mapping[str, str], ops: Sequence[str] | None
) -> None:
    """Refuse rows and reasons for ops that nobody declares: they would check nothing."""
    named = {row.op for row in samples} | set(without)
    unknown = sorted(name for name in named if OPS.get(name) is None)
    if unknown:
        there = ", ".join(sorted(schema.type for schema in offers.ops)) or "none"
        raise ConformanceError(
            f"nobody declares {', '.join(unknown)}; plugin {offers.name!r} declares {there}"
        )


def _cases_of(offers: Offers, op: str, rows: Sequence[Row]) -> list[PluginCase]:
    """Return the checks of one op, on every kind of devices for which there is a kernel of it."""
    made: list[PluginCase] = []
    kinds = offers.kinds_of(op) or host().kernels.devices_of(op)
    rule = dict(offers.rules).get(op)
    for kind in kinds:
        device = f"{kind}:0"
        stand_in = None if count_of(kind) else host_with_stand_in(kind)
        if not count_of(kind) and stand_in is None:
            made.append(PluginCase(f"{op}-{kind}", partial(_skip, f"there is no {kind}")))
            continue
        suffix = "" if kind == "cpu" else f"-{kind}"
        with use_host(stand_in or host()):
            listed = cases(rows, device)
        for case in listed:
            check: Any = partial(_run, case)
            made.append(PluginCase(f"{case.name}{suffix}", _with(stand_in, check)))
        for n, row in enumerate(rows):
            if not isinstance(row, Sample):
                continue
            label = f"{row.name}-{n}{suffix}"
            for name, step_check in (("executors", check_executors), ("steps", check_steps)):
                check = _with(stand_in, partial(step_check, row, device))
                made.append(PluginCase(f"{label}-{name}", check))
            if stand_in is not None:
                continue
            for i, kernel in enumerate(_kernels(offers, op, kind)):
                check = partial(check_alone, row, device, kernel)
                made.append(PluginCase(f"{label}-kernel-{i}", check))
            if rule is not None and row.oracle is not None and row.grad:
                made.append(
                    PluginCase(f"{label}-rule", partial(check_gradient_rule, row, device, rule))
                )
    return made


def _kernels(offers: Offers, op: str, kind: str) -> list[Any]:
    return [kernel for there, kernel in offers.kernels if there == kind and kernel.op == op]


def _made_up(offers: Offers, op: str) -> list[Row]:
    kinds = offers.kinds_of(op) or host().kernels.devices_of(op)
    for kind in kinds:
        if not count_of(kind):
            continue
        rows = generated_rows(OPS[op], f"{kind}:0")
        if rows:
            return list(rows)
    raise ConformanceError(
        f"plugin {offers.name!r}: no inputs were found that {op} takes; give a Sample of it, a "
        f"Scenario that names it in ops=, or a reason in without={{{op!r}: ...}}"
    )


def _with(plugins: PluginHost | None, check: Callable[[], None]) -> Callable[[], None]:
    """Return a check that runs with another host, where one is given."""
    if plugins is None:
        return check

    def run() -> None:
        with use_host(plugins):
            check()

    return run


def _run(case: Case) -> None:
    """Run a check of a row; other ops that gradients need may have no kernel on its device."""
    try:
        case.run()
    except NoKernelError as error:
        raise SkipCheck(str(error).splitlines()[0]) from error


def _samples_of_core(op: str) -> list[Row]:
    # lazy: the samples of core take longer to load than the rest of the kit
    from headrace_testing.samples import SAMPLES

    rows = [row for listed in SAMPLES.values() for row in listed if row.op == op]
    samples: list[Row] = [row for row in rows if isinstance(row, Sample)]
    return samples[:SAMPLES_OF_AN_OP]


def _skip(reason: str) -> None:
    raise SkipCheck(reason)
