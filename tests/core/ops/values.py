"""Steps of tables of what functions yield: each builds a graph of its own and feeds it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import headrace as hr


def fed(value: Any, shape: Any = None) -> hr.Tensor:
    """Return a placeholder of a static shape that is fed a value in the test's step."""
    array = np.asarray(value)
    tensor = hr.placeholder(array.dtype, shape)
    graph: Any = hr.get_default_graph()
    graph.test_feeds = {**getattr(graph, "test_feeds", {}), tensor: array}
    return tensor


def evaluate(build: Callable[[], Any]) -> tuple[Any, Any]:
    """Return the tensors that a function builds, and their values."""
    with hr.Graph().as_default() as graph, hr.Session() as session:
        fetches = build()
        return fetches, session.run(fetches, getattr(graph, "test_feeds", {}))


def same(got: Any, expected: Any) -> None:
    """Assert that values have the expected shapes and elements; lists of them are alike."""
    if isinstance(expected, list):
        assert len(got) == len(expected)
        for mine, wanted in zip(got, expected, strict=True):
            same(mine, wanted)
        return
    assert np.shape(got) == np.shape(expected)
    np.testing.assert_array_equal(np.asarray(got, np.asarray(expected).dtype), expected)
