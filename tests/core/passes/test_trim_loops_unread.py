"""Steps that read some results of conditions and loops: only what these need runs in them."""

from __future__ import annotations

import pytest

import headrace as hr
from headrace.errors import FeedError, InvalidInputError

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

CONFIGS = {
    "optimised": {},
    "unoptimised": {"optimize": False},
    "plain": {"executor": "plain"},
    "compiled": {"compile_after": 0, "verify": True},
}


@pytest.fixture(params=CONFIGS, autouse=True)
def session(request):
    with hr.Graph().as_default(), hr.Session(config=hr.Config(**CONFIGS[request.param])) as session:
        yield session


def changed(session, variable, fetch, feed=None):
    """Return what a fetch gives, and what a variable is before and after."""
    session.run(hr.global_variables_initializer())
    before = session.run(variable)
    found = [session.run(fetch, feed) for _ in range(3)][-1]
    return found, before, session.run(variable)


def in_condition(v):
    return hr.cond(v >= 0, lambda: [v.assign_add(5), hr.constant(1)], lambda: [hr.constant(2)] * 2)


def in_case(v):
    return hr.case([(v < 0, lambda: [hr.constant(2)] * 2)], lambda: [v.assign_add(5), v * 0 + 1])


def in_nested(v):
    return hr.cond(v >= 0, lambda: in_condition(v), lambda: [hr.constant(2)] * 2)


def in_loop(v):
    def body(i, x, y):
        return i + 1, v.assign_add(5) + x * 0, y * 0 + 1

    return hr.while_loop(lambda i, x, y: i < 2, body, [0, 0, 0])[1:]


def in_loop_of_conditions(v):
    def body(i, x, y):
        return (i + 1, *in_condition(v))

    return hr.while_loop(lambda i, x, y: i < 2, body, [0, 0, 0])[1:]


HOLDERS = [in_condition, in_case, in_nested, in_loop, in_loop_of_conditions]


@pytest.mark.parametrize("build", HOLDERS)
def test_effects_of_what_nothing_reads_do_not_happen(session, build):
    v = hr.Variable(0)
    _, other = build(v)
    assert changed(session, v, other) == (1, 0, 0)


@pytest.mark.parametrize("build", HOLDERS)
def test_effects_of_what_is_read_happen(session, build):
    v = hr.Variable(0)
    effect, other = build(v)
    found, _, after = changed(session, v, [effect, other])
    assert found == [after, 1]
    assert after in (15, 30)


@pytest.mark.parametrize("build", HOLDERS)
def test_who_waits_for_a_holder_waits_for_all_of_it(session, build):
    v = hr.Variable(0)
    _, other = build(v)
    with hr.control_dependencies([other]):
        after = hr.identity(7)
    assert changed(session, v, after)[2] > 0


@pytest.mark.parametrize("build", HOLDERS)
def test_the_operation_itself_as_a_target_is_all_of_it(session, build):
    v = hr.Variable(0)
    _, other = build(v)
    assert changed(session, v, other.op)[2] > 0


@pytest.mark.parametrize("taken", [True, False])
def test_what_is_not_read_needs_no_feed(session, taken):
    x, y = hr.placeholder(hr.float32, []), hr.placeholder(hr.float32, [])
    p = hr.placeholder(hr.bool, [])
    first, second = hr.cond(p, lambda: [x * 2.0, y + 1.0], lambda: [x, y])
    assert session.run(first, {p: taken, x: 3.0}) == (6.0 if taken else 3.0)
    assert session.run(second, {p: taken, y: 3.0}) == (4.0 if taken else 3.0)
    with pytest.raises(FeedError, match=r"Placeholder_1:0 float32\[\]"):
        session.run([first, second], {p: taken, x: 3.0})


def test_variables_of_loops_need_no_feed(session):
    x = hr.placeholder(hr.float32, [])
    i, _, total = hr.while_loop(
        lambda i, a, b: i < 3, lambda i, a, b: (i + 1, a + x, b + 2.0), [0, 0.0, 0.0]
    )
    assert session.run([i, total]) == [3, 6.0]
    call = session.make_callable([i, total])
    assert call() == [3, 6.0]


def test_what_is_not_read_does_not_fail(session):
    bad, good = hr.cond(
        hr.constant(True),
        lambda: [hr.check_numerics(hr.log(-hr.ones([])), "x"), hr.constant(1.0)],
        lambda: [hr.constant(0.0), hr.constant(2.0)],
    )
    assert session.run(good) == 1.0
    with pytest.raises(InvalidInputError, match="x: tensor had NaN values"):
        session.run(bad)


@pytest.mark.parametrize("taken", [True, False])
def test_an_operation_that_a_branch_returns_gives_the_condition(session, taken):
    v = hr.Variable(0)
    done = hr.cond(hr.constant(taken), lambda: v.assign(5).op, hr.no_op)
    found, _, after = changed(session, v, done)
    assert found == taken
    assert after == (5 if taken else 0)


def test_of_operations_that_a_branch_returns_those_run_that_are_fetched(session):
    v, w = hr.Variable(7), hr.Variable(7)
    first, second = hr.cond(
        hr.constant(True),
        lambda: [v.assign(1).op, w.assign(2).op],
        lambda: [hr.no_op(), hr.constant(10).op],
    )
    session.run(hr.global_variables_initializer())
    assert session.run(second)
    assert session.run([v, w]) == [7, 2]
    session.run(first)
    assert session.run([v, w]) == [1, 2]


def test_gradients_of_what_is_read(session):
    x, y = hr.constant(3.0), hr.placeholder(hr.float32, [])
    p = hr.placeholder(hr.bool, [])
    first, second = hr.cond(p, lambda: [x * x, y * x], lambda: [x * 5.0, y])
    gradient = hr.gradients(first, x)[0]
    assert session.run([first, gradient], {p: True}) == [9.0, 6.0]
    assert session.run(gradient, {p: False}) == 5.0
    both = hr.gradients([first, second], [x, y])
    assert session.run(both, {p: True, y: 2.0}) == [8.0, 3.0]
    assert session.run(both, {p: False, y: 2.0}) == [5.0, 1.0]


def test_gradients_of_loops_of_conditions(session):
    x, y = hr.constant(2.0), hr.placeholder(hr.float32, [])

    def body(i, a, b):
        return (
            i + 1,
            *hr.cond(hr.equal(i % 2, 0), lambda: [a * x, b + y], lambda: [a + x, b * y]),
        )

    _, a, b = hr.while_loop(lambda i, a, b: i < 3, body, [0, 1.0, 1.0])
    assert session.run([a, hr.gradients(a, x)[0]]) == [8.0, 8.0]
    assert session.run([b, hr.gradients(b, y)[0]], {y: 3.0}) == [15.0, 8.0]
