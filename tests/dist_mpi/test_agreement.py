"""What sessions must agree on, on the task whose variables they change."""

from __future__ import annotations

import re

import pytest

import headrace as hr
from headrace.errors import ConfigError
from headrace.extend.runtime import Options

pytestmark = pytest.mark.needs("dist-mpi")

agreement = pytest.importorskip("headrace_mpi.steps.agreement")


def changing() -> list[hr.Graph]:
    with hr.Graph().as_default() as graph:
        hr.Variable(0.0).assign_add(1.0)
    return [graph]


@pytest.mark.parametrize("rank", [1, 2], ids=["of one rank", "of two ranks"])
def test_a_session_that_disagrees_is_not_taken_in(rank: int) -> None:
    known = agreement.Agreement()
    bounded, relaxed = Options(consistency="bounded:1"), Options(consistency="relaxed")
    known.order(1, 1, bounded, changing())
    match = re.escape("'relaxed': this session\n  'bounded:1': one of rank 1")
    with pytest.raises(ConfigError, match=match):
        known.order(rank, 2, relaxed, changing())
    # It stands in nobody's way.
    known.order(3, 1, bounded, changing())
    known.leave(1, 1)
    known.leave(3, 1)
    known.order(rank, 2, relaxed, changing())


def test_a_session_that_changes_nothing_need_not_agree() -> None:
    known = agreement.Agreement()
    known.order(1, 1, Options(consistency="bounded:1"), changing())
    known.order(2, 1, Options(consistency="relaxed"), [hr.Graph()])
