"""The last steps of rows, which do not fill a vector, and functions of what rows reduce to."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr

COMPILED = {"compile_after": 0, "compile_wait": True}
RNG = np.random.default_rng(8)


def sums(x):
    return hr.reduce_logsumexp(x, -1), hr.reduce_sum(hr.exp(x), 0)


def shares(x):
    lost = hr.reduce_logsumexp(x, -1)
    return hr.nn.softmax(x), hr.reduce_max(x - lost[..., None], 0), hr.nn.log_softmax(x)


def powers(x):
    norms = hr.sqrt(hr.reduce_sum(x * x, -1))
    return hr.exp(x * 0.5), hr.tanh(norms), hr.reduce_sum(hr.sin(norms))


def added(x):
    return x * 2.0 + 1.0, hr.reduce_sum(x * x, 0), hr.reduce_max(x * 2.0, 0)


PROGRAMS = {"sums": sums, "shares": shares, "powers": powers, "added": added}


def run(build, given, **config):
    with hr.Graph().as_default():
        x = hr.placeholder(given.dtype, given.shape)
        made = build(x)
        with hr.Session(config=hr.Config(**config)) as session:
            found = session.run(made, {x: given})
            return found, session.explain(made, {x: given})


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("width", [8, 12, 16, 17, 20, 24, 33, 48, 64, 65, 150, 160, 163, 263, 1030])
@pytest.mark.parametrize("name", PROGRAMS)
def test_rows_of_any_length_are_those_of_plain_kernels(name, width, dtype):
    given = RNG.standard_normal((37, width)).astype(dtype)
    want, _ = run(PROGRAMS[name], given, executor="plain")
    for threads in (1, 3):
        found, _ = run(PROGRAMS[name], given, threads=threads, **COMPILED)
        for one, other in zip(found, want, strict=True):
            tolerance = 200 * np.finfo(dtype).eps
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("rows", "width", "apart"),
    [(40, 150, True), (40, 20, True), (15, 150, False), (40, 257, False)],
)
def test_functions_of_many_short_rows_have_a_nest_of_their_own(rows, width, apart):
    given = RNG.standard_normal((rows, width)).astype(np.float32)
    source = run(lambda x: hr.reduce_logsumexp(x, -1), given, **COMPILED)[1].source()
    (nests,) = (line for line in source.splitlines() if line.startswith("# nests:"))
    assert nests.endswith(f"; {rows} in 1 phases") == apart


@pytest.mark.parametrize(("width", "vectors"), [(150, True), (1000, True), (1040, False)])
def test_what_does_not_fill_a_vector_is_one_with_gaps(width, vectors):
    given = RNG.standard_normal((40, width)).astype(np.float32)
    source = run(lambda x: hr.exp(x * hr.range(1.0, width + 1.0)), given, **COMPILED)[1].source()
    assert ("in even_" in source and "in folded_" in source) == vectors


@pytest.mark.parametrize(
    ("width", "loop"),
    [(8, "vectors"), (12, "range"), (16, "folded_vectors"), (20, "folded_vectors"), (32, "range")],
)
def test_rows_that_fill_a_vector_or_little_more_are_added_in_vectors(width, loop):
    given = RNG.standard_normal((4000, width)).astype(np.float32)
    source = run(lambda x: hr.reduce_sum(x * x, 0), given, **COMPILED)[1].source()
    assert f"for j in {loop}(" in source


@pytest.mark.parametrize(("width", "loop"), [(7, "range"), (33, "vectors"), (64, "vectors")])
def test_rows_of_up_to_64_elements_are_not_unrolled(width, loop):
    given = RNG.standard_normal((4000, width)).astype(np.float32)
    source = run(lambda x: x * hr.range(1.0, width + 1.0), given, **COMPILED)[1].source()
    assert f"for j in {loop}(" in source


def test_functions_of_rows_wait_for_what_is_updated_in_place():
    """A variable that is read along rows, and updated by what functions of them give."""
    given = RNG.standard_normal((40, 30)).astype(np.float32)
    with hr.Graph().as_default():
        x = hr.placeholder("float32", given.shape)
        total = hr.Variable(np.zeros(40, np.float32))
        step = total.assign_add(hr.reduce_logsumexp(x + total[:, None], -1))
        with hr.Session(config=hr.Config(**COMPILED)) as session:
            session.run(hr.global_variables_initializer())
            found = [session.run(step, {x: given}) for _ in range(3)][-1]
    want = np.zeros(40)
    for _ in range(3):
        want += np.log(np.exp(given + want[:, None]).sum(1))
    np.testing.assert_allclose(found, want, rtol=1e-5)
