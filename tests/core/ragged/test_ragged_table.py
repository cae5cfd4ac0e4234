"""Programs of ragged tensors yield what TensorFlow 1.15 yields, and are refused alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from tests.core.ragged.ragged_programs import BEFORE, PROGRAMS, REFUSED

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")
TABLE = json.loads(Path(__file__).with_name("ragged_table.json").read_text())


def plain(value: Any) -> Any:
    """Return a value as the table holds it."""
    if isinstance(value, hr.ragged.RaggedTensorValue):
        return plain(value.to_list())
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, complex):
        return [round(value.real, 5), round(value.imag, 5)]
    return value.decode() if isinstance(value, bytes) else value


def made(program: str) -> Any:
    """Return the result of a program."""
    names = {"tf": hr}
    exec(BEFORE, names)
    return eval(program, names)


def close(one: Any, other: Any) -> bool:
    """Whether nested lists are equal but for the last digits of floats."""
    if isinstance(other, list):
        return isinstance(one, list) and len(one) == len(other) and all(map(close, one, other))
    if isinstance(other, str) and isinstance(one, float):
        other = float(other)
    if isinstance(one, float):
        return bool(np.isclose(one, other, rtol=2e-5, atol=2e-5, equal_nan=True))
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def test_the_table_is_of_these_programs() -> None:
    assert set(TABLE["outcomes"]) == set(PROGRAMS)
    assert set(TABLE["refused"]) == set(REFUSED)


@pytest.mark.parametrize("program", PROGRAMS)
def test_yields_what_tensorflow_does(program: str) -> None:
    expected = TABLE["outcomes"][program]
    with hr.Graph().as_default(), hr.Session() as session:
        result = made(program)
        value = session.run(result)
    assert close(plain(value), expected["values"])
    assert result.dtype.name == expected["dtype"]
    assert getattr(result, "ragged_rank", 0) == expected["ragged_rank"]
    splits = getattr(result, "row_splits", None)
    assert (None if splits is None else splits.dtype.name) == expected["splits"]
    static = expected["static"]
    if static is not None:
        known = result.shape.as_list()
        assert len(known) == len(static)
        # What is known of both is the same.
        assert all(None in pair or pair[0] == pair[1] for pair in zip(known, static, strict=True))


@pytest.mark.parametrize("program", REFUSED)
def test_is_refused_as_in_tensorflow(program: str) -> None:
    kinds = (hr.HeadraceError, TypeError, ValueError)
    with (
        hr.Graph().as_default(),
        hr.Session() as session,
        pytest.raises(kinds, match=r"\w+ \w+") as caught,
    ):
        session.run(made(program))
    assert len(str(caught.value)) > 20
