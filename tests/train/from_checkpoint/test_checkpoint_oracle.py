"""Programs that read checkpoints return and raise what they do in TensorFlow 1.15."""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from tests.train.bundles.bundle_files import KINDS, laid_down
from tests.train.from_checkpoint.checkpoint_programs import PROGRAMS

pytestmark = pytest.mark.needs("backend-cpu")

HERE = Path(__file__).parent
EXPECTED = json.loads((HERE / "expected.json").read_text())


# What files say is no error inside of the library, as TensorFlow has it there.
OTHER_FAMILIES = {"words_of_another_checkpoint": "InvalidArgumentError"}


def test_every_program_has_an_outcome() -> None:
    assert sorted(EXPECTED) == sorted(PROGRAMS)


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_the_outcome_is_that_of_tensorflow(name: str, tmp_path: Path) -> None:
    for kind in KINDS:
        laid_down(kind, tmp_path, kind)
    expected = EXPECTED[name]
    with hr.Graph().as_default(), hr.Session() as session:
        if "returns" in expected:
            found = PROGRAMS[name](hr, session.run, str(tmp_path))
            assert json.loads(json.dumps(found, default=_plain)) == expected["returns"]
            return
        raised = OTHER_FAMILIES.get(name, expected["raises"])
        family: Any = getattr(hr.errors, raised, None) or getattr(builtins, raised)
        with pytest.raises(family, match=r"."):
            PROGRAMS[name](hr, session.run, str(tmp_path))


def _plain(value: Any) -> Any:
    return value.tolist()
