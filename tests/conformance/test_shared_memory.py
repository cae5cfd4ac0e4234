"""Kernels return the memory of an input only where the op says so.

Whoever plans memory believes what ops say: what shares nothing may be written over while a result
that was made of it is still in use.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest

import headrace as hr
from headrace.graph.schema import OPS
from headrace.plugins.host import host
from headrace.testing import Sample
from headrace.testing.samples import SAMPLES
from headrace_testing.build import flat
from headrace_testing.failure import SkipCheck
from headrace_testing.plugin_checks.kernels import calls_of, unstated_sharing

pytestmark = pytest.mark.needs("backend-cpu")

TYPES = {schema.type: schema for schema in OPS}


def stated(row: object) -> bool:
    """Whether a sample is of an op whose outputs have memory of their own, in part at least."""
    if not isinstance(row, Sample) or row.op not in TYPES:
        return False
    schema = TYPES[row.op]
    return not schema.view and not all(map(schema.may_share, schema.inputs))


@pytest.mark.parametrize(
    "family", [name for name, rows in SAMPLES.items() if any(map(stated, rows))]
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_shares_memory_is_stated(family: str) -> None:
    called, wrong = 0, []
    for row in filter(stated, SAMPLES[family]):
        host().kernels.arrive(row.op)
        for kernel in host().kernels.offers.get((row.op, "cpu"), ()):
            with suppress(SkipCheck):
                for found in calls_of(row, "cpu", kernel):
                    arrays = [array.copy() for array in flat(found.values)]
                    # Samples of errors, too, are among them.
                    with suppress(ValueError, TypeError, hr.errors.HeadraceError):
                        results = found.results(arrays)
                        called += 1
                        shared = unstated_sharing(found.op, arrays, results)
                        wrong += [f"{row.name}: {shared}, by {kernel.where}"] if shared else []
    assert wrong == []
    assert called


@pytest.mark.needs("data")
@pytest.mark.parametrize(
    "pipeline",
    [
        lambda data, f: data.map(f, num_parallel_calls=4),
        lambda data, f: data.map(f).prefetch(4),
        lambda data, f: data.map(f).batch(4).unbatch(),
    ],
    ids=["parallel", "prefetch", "batch"],
)
def test_elements_that_are_checked_are_not_written_over(pipeline, graph) -> None:
    def checked(x):
        value = hr.cast(x, hr.float32)
        return hr.check_numerics(value / (value - 300.0), "bad")

    elements = pipeline(hr.data.Dataset.range(100), checked)
    following = hr.data.make_one_shot_iterator(elements).get_next()
    with hr.Session() as session:
        found = [session.run(following) for _ in range(100)]
    numbers = np.arange(100, dtype=np.float32)
    np.testing.assert_array_equal(found, numbers / (numbers - 300))
