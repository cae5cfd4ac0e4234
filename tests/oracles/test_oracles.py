"""Values and gradients agree with those of JAX and PyTorch."""

from __future__ import annotations

from collections import Counter

import pytest

from .compare import DTYPES, compare, function_named
from .libraries import installed
from .rows import Row
from .tables import ROWS

FUNCTIONS = 200
LIBRARIES = ("jax", "torch")

pytestmark = [
    pytest.mark.needs("backend-cpu", "autodiff"),
    # JAX and PyTorch have warnings of their own.
    pytest.mark.filterwarnings("default"),
]


def test_there_are_enough_functions_and_each_is_named_once() -> None:
    repeated = [key for key, count in Counter(row.key for row in ROWS).items() if count > 1]
    assert not repeated
    assert len({function_named(row.name) for row in ROWS}) >= FUNCTIONS


if not any(map(installed, LIBRARIES)):

    @pytest.mark.skip(reason="neither jax nor torch is installed: `nox -s oracles`")
    def test_a_function_agrees_with_its_reference() -> None: ...

else:

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key)
    def test_a_function_agrees_with_its_reference(row: Row, dtype: str) -> None:
        if not installed(row.library):
            pytest.skip(f"{row.library} is not installed")
        errors = compare(row, dtype)
        tolerance = row.tolerance(dtype)
        assert errors.value <= tolerance
        assert errors.gradient <= tolerance
