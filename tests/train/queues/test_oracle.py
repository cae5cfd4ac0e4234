"""Programs with queues return and raise what they do in TensorFlow 1.15."""

from __future__ import annotations

import builtins
import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from tests.train.queues.accumulator_programs import PROGRAMS as ACCUMULATORS
from tests.train.queues.queue_programs import PROGRAMS as QUEUES

pytestmark = pytest.mark.needs("backend-cpu")

HERE = Path(__file__).parent
EXPECTED = json.loads((HERE / "expected.json").read_text())

PROGRAMS = {**QUEUES, **ACCUMULATORS}


class Run:
    def __init__(self, session: hr.Session) -> None:
        self.session = session

    def __call__(self, fetches: Any) -> Any:
        return self.session.run(fetches)


def test_every_program_has_an_outcome() -> None:
    assert sorted(EXPECTED) == sorted(PROGRAMS)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_program_does_what_it_does_in_tensorflow(name: str) -> None:
    expected = EXPECTED[name]
    with hr.Graph().as_default(), contextlib.closing(hr.Session()) as session:
        if "returns" in expected:
            assert PROGRAMS[name](hr, Run(session)) == expected["returns"]
            return
        raised = expected["raises"]
        kind = getattr(hr.errors, raised, None) or getattr(builtins, raised)
        with pytest.raises(kind, match=r"\w") as caught:
            PROGRAMS[name](hr, Run(session))
        assert isinstance(caught.value, hr.HeadraceError)
        assert len(str(caught.value).splitlines()) <= 12
