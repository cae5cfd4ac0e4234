"""The fuzzer on core's ops: a short run here, the long one is the nox session ``fuzz``."""

from __future__ import annotations

import pytest

from headrace.testing.fuzz import core_targets, fuzz, summary

pytestmark = pytest.mark.needs("backend-cpu")

# Each target is called some times; the seed is another one than that of the session.
CALLS = 1500


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_random_calls_are_right_or_refused():
    targets, skipped = core_targets()
    report = fuzz(targets, CALLS, seed=11, workers=2)
    assert not report.forbidden, summary(report, skipped)
    assert report.outcomes.total() == CALLS
    assert report.outcomes["right"] > CALLS // 3


def test_all_ops_are_called_or_have_a_reason():
    targets, skipped = core_targets()
    assert all(skipped.values())
    assert not set(targets) & set(skipped)
    assert len(targets) > 600
