"""A short soak: what a process holds after some sessions, it holds after more."""

from __future__ import annotations

import pytest

from .__main__ import Holding, grown, sessions

pytestmark = pytest.mark.needs("autodiff", "backend-cpu", "io", "train")


@pytest.mark.slow
def test_sessions_leave_nothing_behind() -> None:
    assert grown(sessions(40)) == []


def test_growth_is_told() -> None:
    warm = Holding(100.0, 3, 10)
    assert grown([warm] * 10) == []
    told = grown([*[warm] * 9, Holding(120.0, 4, 11)])
    assert [fault.partition(" ")[0] for fault in told] == ["memory", "threads", "descriptors"]
