"""Signals, sets, boxes and joined strings are as a table of TensorFlow 1.15 says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace import errors
from tests.core.ops import signal_programs

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

HERE = Path(__file__).parent
TABLE = json.loads((HERE / "signal_table.json").read_text())

# Other names of what TensorFlow raises.
FAMILIES: dict[str, type[Exception]] = {
    "ValueError": ValueError,
    "TypeError": TypeError,
    "NotImplementedError": NotImplementedError,
    "InvalidArgumentError": errors.InvalidArgumentError,
}


def made(program: str) -> list[hr.Tensor]:
    found = eval(program, {**vars(signal_programs), "tf": hr})
    return found if isinstance(found, list) else [found]


def array(entry: dict[str, Any]) -> Any:
    if entry["dtype"] == "string":
        return np.array([text.encode() for text in entry["values"]], object).reshape(entry["shape"])
    if entry["dtype"].startswith("complex"):
        real, imag = (np.array(part) for part in entry["values"])
        return (real + 1j * imag).reshape(entry["shape"])
    return np.array(entry["values"]).reshape(entry["shape"])


@pytest.mark.parametrize("program", signal_programs.PROGRAMS)
def test_results_are_those_of_tensorflow(program: str) -> None:
    expected = TABLE["outcomes"][program]
    with hr.Graph().as_default(), hr.Session() as session:
        tensors = made(program)
        for tensor, value, entry in zip(tensors, session.run(tensors), expected, strict=True):
            assert tensor.dtype.name == entry["dtype"]
            if entry["static"] is not None:
                known = hr.TensorShape(entry["static"])
                assert tensor.shape.is_compatible_with(known)
                assert tensor.shape.is_fully_defined() or not known.is_fully_defined()
            assert list(value.shape) == entry["shape"]
            wanted = array(entry)
            if value.dtype == object:
                assert value.tolist() == wanted.tolist()
            else:
                np.testing.assert_allclose(value, wanted, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("program", signal_programs.REFUSED)
def test_refused_alike(program: str) -> None:
    family = FAMILIES[TABLE["refused"][program]]
    with (
        hr.Graph().as_default(),
        hr.Session() as session,
        pytest.raises(family, match=r"\w{2}") as caught,
    ):
        session.run(made(program))
    assert isinstance(caught.value, hr.HeadraceError)
