"""The package and its namespace."""

from __future__ import annotations

import headrace as hr


def test_the_namespace_is_there() -> None:
    assert hr.data.experimental.AUTOTUNE == -1
