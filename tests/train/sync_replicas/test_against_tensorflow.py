"""The same programs in TensorFlow 1.15, on a cluster of threads; see ``generate_sync_table.py``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from tests.train.sync_replicas.replica_threads import Sharing
from tests.train.sync_replicas.sync_programs import PROGRAMS

HERE = Path(__file__).parent
pytestmark = [pytest.mark.needs("autodiff", "backend-cpu")]

TABLE = json.loads((HERE / "sync_table.json").read_text())


def flat(value: Any) -> list[float]:
    if isinstance(value, list):
        return [number for part in value for number in flat(part)]
    return [value]


def test_every_program_has_a_row() -> None:
    assert set(TABLE["cases"]) == set(PROGRAMS)


# The others take as long as these, and tell of the same.
QUICK = ("one_", "several", "default", "averages", "momentum_2", "adam_3")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name.startswith(QUICK) else pytest.mark.slow)
        for name in sorted(PROGRAMS)
    ],
)
def test_it_is_as_in_tensorflow(name: str, cluster: Sharing) -> None:
    found = PROGRAMS[name](hr, cluster)
    np.testing.assert_allclose(flat(found), flat(TABLE["cases"][name]), rtol=1e-5, atol=1e-6)
