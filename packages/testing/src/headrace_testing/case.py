"""From rows to test cases: which checks a row calls for, and how pytest runs them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from headrace.extend.ops import OPS
from headrace_testing.checks.forward import (
    check_broadcast,
    check_empty,
    check_forward,
    check_scalar,
)
from headrace_testing.checks.gradients import check_gradient, check_second_order, has_gradient
from headrace_testing.checks.layouts import check_inputs_kept, check_layouts
from headrace_testing.checks.rejects import check_reject
from headrace_testing.checks.routes import check_routes
from headrace_testing.checks.specs import (
    check_document,
    check_inferred_shape,
    check_unknown_shapes,
)
from headrace_testing.checks.total import check_total
from headrace_testing.failure import SkipCheck
from headrace_testing.sample import Reject, Row

Check = Callable[[Any, str], None]


@dataclass(frozen=True, slots=True)
class Case:
    """One check of one row on one device.

    Attributes:
        name: Unique among the cases made together.
        row: The row.
        check: The function that makes the check.
        device: Where it runs.
    """

    name: str
    row: Row
    check: Check
    device: str

    def run(self) -> None:
        """Make the check.

        Raises:
            ConformanceError: if the row's op does not pass it.
            SkipCheck: if it cannot be made here.
        """
        self.check(self.row, self.device)


def checks_of(row: Row) -> list[tuple[str, Check]]:
    """Return the checks that a row calls for, by name."""
    if isinstance(row, Reject):
        return [("refused", check_reject)]
    schema = OPS[row.op]
    checks: list[tuple[str, Check]] = [
        ("forward", check_forward),
        ("unknown_shapes", check_unknown_shapes),
        ("document", check_document),
    ]
    if row.inputs:
        checks += [("layouts", check_layouts), ("inputs_kept", check_inputs_kept)]
    if row.oracle is not None:
        checks += [("inferred_shape", check_inferred_shape), ("routes", check_routes)]
    if schema.total or schema.expression is not None:
        checks.append(("total", check_total))
    if row.oracle is not None and schema.elementwise:
        checks += [("scalar", check_scalar), ("empty", check_empty)]
        if len(row.inputs) > 1:
            checks.append(("broadcast", check_broadcast))
    if has_gradient(row):
        checks.append(("gradient", check_gradient))
        if row.second_order:
            checks.append(("second_order", check_second_order))
    return checks


def cases(rows: Iterable[Row], device: str = "cpu") -> list[Case]:
    """Return every check of every row, on one device."""
    listed = list(rows)
    uses = Counter(row.name for row in listed)
    seen: Counter[str] = Counter()
    made = []
    for row in listed:
        name = row.name
        if uses[name] > 1:
            seen[name] += 1
            name = f"{name}-{seen[name]}"
        made += [Case(f"{name}-{kind}", row, check, device) for kind, check in checks_of(row)]
    return made


def conformance(rows: Iterable[Row], device: str = "cpu") -> Callable[..., None]:
    """Return a pytest test that checks every row, one test case for each check.

    Bind it to a name that pytest collects::

        test_conformance = conformance([
            Sample("Cube", [uniform((3, 4), -2, 2)], oracle=lambda x: x**3),
        ])

    Args:
        rows: Samples and reject rows.
        device: The device to run on, as in ``"cpu"`` or ``"cuda:0"``.
    """
    import pytest

    made = cases(rows, device)

    @pytest.mark.parametrize("case", made, ids=[case.name for case in made])
    def test(case: Case) -> None:
        try:
            case.run()
        except SkipCheck as reason:
            pytest.skip(str(reason))

    return test
