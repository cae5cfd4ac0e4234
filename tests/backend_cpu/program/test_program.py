"""Programs: what a compiled step does with memory, variables, feeds, failures and threads."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace_cpu.fusion.kernel import FusedKernel
from headrace_cpu.program.instruction import Bound
from headrace_cpu.program.program import Program

COMPILED = {"compile_after": 0}
TRAINS = pytest.mark.needs("train")


def programs(session: hr.Session, fetches: Any) -> list[Program]:
    """Return the programs of a step that has run and is one region."""
    prepared = [p for key, p in session._prepared.items() if key[0] is fetches]
    (node,) = prepared[0].step.plan.nodes
    return list(node.region.programs.values())


def open_session(**settings: Any) -> hr.Session:
    session = hr.Session(config=hr.Config(**{"executor": "plan", **settings}))
    session.run(hr.global_variables_initializer())
    return session


def train(learning_rate: float = 0.1) -> tuple[hr.Tensor, hr.Tensor, hr.Operation, Any]:
    x = hr.placeholder(hr.float32, [None, 6])
    w = hr.Variable(hr.constant(np.linspace(-1, 1, 24, dtype=np.float32).reshape(6, 4)))
    b = hr.Variable(hr.zeros([4]))
    y = hr.tanh(hr.matmul(x, w) + b)
    loss = hr.reduce_mean(hr.square(y - 0.5) * hr.sigmoid(y))
    step = hr.train.MomentumOptimizer(learning_rate, 0.9).minimize(loss)
    return x, loss, step, (w, b)


BATCH = np.random.default_rng(0).standard_normal((5, 6), dtype=np.float32)


@pytest.mark.parametrize("compile_after", [0, 2, 100])
@TRAINS
def test_training_equals_the_plain_executor(compile_after: int) -> None:
    x, loss, step, variables = train()
    with (
        open_session(executor="plain") as plain,
        open_session(compile_after=compile_after) as compiled,
    ):
        for _ in range(6):
            expected = plain.run([loss, step], {x: BATCH})[0]
            assert compiled.run([loss, step], {x: BATCH})[0] == pytest.approx(expected, rel=1e-5)
        for expected, found in zip(plain.run(variables), compiled.run(variables), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@TRAINS
def test_each_shape_gets_a_program_of_its_own() -> None:
    x, loss, _, _ = train()
    with open_session() as session:
        for rows in (5, 3, 5, 1):
            session.run(loss, {x: np.ones((rows, 6), np.float32)})
        assert len(programs(session, loss)) == 3


def test_too_many_shapes_are_warned_about_once_and_still_run() -> None:
    x = hr.placeholder(hr.float32, [None])
    y = hr.reduce_sum(hr.exp(x) * 2.0)
    with open_session() as session:

        def run(rows: int) -> None:
            assert session.run(y, {x: np.zeros(rows, np.float32)}) == 2.0 * rows

        for rows in range(32):
            run(rows)
        with pytest.warns(
            RuntimeWarning, match=r"32 combinations of shapes(.|\n)*test_program\.py"
        ):
            run(32)
        # The fixture that turns warnings into errors tells if it came again.
        run(33)
        run(34)


def test_nobody_is_warned_of_shapes_that_depend_on_data() -> None:
    x = hr.placeholder(hr.float32, [40])
    kept = hr.boolean_mask(x, hr.greater(x, 0.0))
    y = hr.reduce_sum(hr.exp(hr.identity(kept)) * 2.0)
    with open_session() as session:
        for count in range(36):
            values = np.where(np.arange(40) < count, np.float32(1.0), np.float32(-1.0))
            np.testing.assert_allclose(session.run(y, {x: values}), 2 * np.e * count, rtol=1e-5)


def test_what_the_caller_keeps_is_never_overwritten() -> None:
    x = hr.placeholder(hr.float32, [None, 6])
    y = hr.tanh(x * 2.0) + 1.0
    view = hr.reshape(y, [-1])
    with open_session(**COMPILED) as session:
        kept = [session.run([y, view, x], {x: BATCH * i}) for i in range(4)]
        for i, (value, flat, fed) in enumerate(kept):
            np.testing.assert_allclose(value, np.tanh(BATCH * i * 2) + 1, atol=1e-6)
            np.testing.assert_array_equal(flat, value.ravel())
            np.testing.assert_array_equal(fed, BATCH * i)
            value += 1  # The caller's own: nobody else sees it.
            assert not np.shares_memory(value, flat)


@TRAINS
def test_values_of_variables_that_the_caller_keeps_stay() -> None:
    x, _, step, (w, _) = train()
    with open_session(**COMPILED) as session:
        before = session.run(w)
        copy = before.copy()
        for _ in range(3):
            session.run(step, {x: BATCH})
        np.testing.assert_array_equal(before, copy)
        assert not np.array_equal(session.run(w), copy)


@TRAINS
def test_variables_are_updated_in_place() -> None:
    x, _, step, (w, _) = train()
    with open_session(**COMPILED) as session:
        session.run(step, {x: BATCH})
        cell = _cell(session, w)
        session.run(step, {x: BATCH})
        where = cell.value.ctypes.data
        session.run(step, {x: BATCH})
        assert cell.value.ctypes.data == where
        # Who holds the value keeps it: the step then works on a copy.
        held = cell.value
        session.run(step, {x: BATCH})
        assert cell.value.ctypes.data != where
        assert not np.array_equal(held, cell.value)


@pytest.mark.needs("train")
@pytest.mark.parametrize("waits", [1, 2])
def test_variables_are_updated_in_place_by_what_waited(waits: int) -> None:
    """They are read when what waits has come: else their readers would hold the old values."""
    first, second = (hr.FIFOQueue(100, hr.float32, [[6]]) for _ in range(2))
    x = first.dequeue_many(4)
    if waits == 2:
        with hr.control_dependencies([second.enqueue(x[0])]):
            x = hr.identity(x)
    w = hr.Variable(hr.ones([6, 3]))
    step = hr.assign_sub(w, hr.matmul(x, hr.tanh(hr.matmul(x, w)), transpose_a=True) * 0.1).op
    fill = first.enqueue_many(BATCH[:1, :1] + hr.zeros([40, 6]))
    with open_session(**COMPILED) as session:
        session.run(fill)
        session.run(step)
        cell = _cell(session, w)
        session.run(step)
        where = cell.value.ctypes.data
        session.run(step)
        assert cell.value.ctypes.data == where


def _cell(session: hr.Session, variable: Any) -> Any:
    container = session._runtime.state.container("/job:localhost/task:0/device:cpu:0", "")
    return next(c for c in container.resources() if c.name == variable.handle.op.name)


def test_feeds_are_bound_without_a_copy_and_never_changed() -> None:
    x = hr.placeholder(hr.float32, [None, None])
    y = hr.reduce_sum(hr.nn.relu(x) * 2.0 + x)
    strided = np.asfortranarray(BATCH)
    with open_session(**COMPILED) as session:
        before = BATCH.copy()
        expected = float((np.maximum(BATCH, 0) * 2 + BATCH).sum())
        for value in (BATCH, strided, BATCH[::-1, ::-1][::-1, ::-1]):
            assert session.run(y, {x: value}) == pytest.approx(expected, rel=1e-4)
        np.testing.assert_array_equal(BATCH, before)


def test_failures_name_the_operation_and_the_line() -> None:
    x = hr.placeholder(hr.int32, [None])
    y = hr.gather(hr.constant([1.0, 2.0]), x * 2) + 1.0
    with open_session() as session:
        np.testing.assert_array_equal(session.run(y, {x: [0]}), [2.0])
        with pytest.raises(hr.errors.HeadraceError, match=r"Gather.*\n.*test_program\.py") as error:
            session.run(y, {x: [7]})
        assert "int32[1]" in str(error.value)
        np.testing.assert_array_equal(session.run(y, {x: [0]}), [2.0])


def test_shapes_that_do_not_fit_fail_as_in_the_plain_executor() -> None:
    a, b = hr.placeholder(hr.float32, [None]), hr.placeholder(hr.float32, [None])
    y = hr.exp(a + b)
    with open_session(**COMPILED) as session:
        with pytest.raises(hr.errors.ShapeError, match="do not broadcast"):
            session.run(y, {a: np.ones(2), b: np.ones(3)})
        np.testing.assert_allclose(session.run(y, {a: np.ones(2), b: np.ones(1)}), np.exp([2, 2]))


def test_a_failed_update_leaves_the_variable_usable() -> None:
    x = hr.placeholder(hr.float32, [None])
    v = hr.Variable(hr.zeros([3]))
    step = hr.assign_add(v, x * 2.0)
    with open_session(**COMPILED) as session:
        session.run(step, {x: np.ones(3)})
        with pytest.raises(hr.errors.HeadraceError, match="AssignAdd"):
            session.run(step, {x: np.ones(2)})
        np.testing.assert_array_equal(session.run(v), [2.0, 2.0, 2.0])
        session.run(step, {x: np.ones(3)})
        np.testing.assert_array_equal(session.run(v), [4.0, 4.0, 4.0])


@pytest.mark.parametrize("count", [1, 2])
def test_a_kernel_that_stops_gives_back_the_variables_it_took(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = hr.placeholder(hr.float32, [3])
    y = hr.exp(x)
    variables = [hr.Variable(hr.zeros([3])) for _ in range(count)]
    step = hr.group(*(hr.assign_add(v, y * (i + 1.0)) for i, v in enumerate(variables)))
    broken = False
    bind = FusedKernel.bind

    def bind_stoppable(self: FusedKernel, at: Any) -> Bound:
        made = bind(self, at)

        def call() -> object:
            if broken:
                raise RuntimeError("the kernel stopped")
            return made.call()

        return Bound(call, made.point)

    monkeypatch.setattr(FusedKernel, "bind", bind_stoppable)
    with open_session(**COMPILED) as session:
        for _ in range(2):
            session.run(step, {x: np.zeros(3)})
        (program,) = programs(session, step)
        assert [len(i.updates) for i in program.instructions] == [count]
        broken = True
        with pytest.raises(hr.errors.HeadraceError, match="the kernel stopped"):
            session.run(step, {x: np.zeros(3)})
        broken = False
        session.run(step, {x: np.zeros(3)})
        for i, value in enumerate(session.run(variables)):
            np.testing.assert_array_equal(value, np.full(3, 3.0 * (i + 1)))


def test_reads_ordered_around_an_update_see_both_values() -> None:
    v = hr.Variable(hr.ones([4]))
    old = v.read_value() * 3.0
    with hr.control_dependencies([old]):
        update = hr.assign_add(v, hr.ones([4]) * 2.0)
    with hr.control_dependencies([update]):
        new = v.read_value() * 3.0
    with open_session(**COMPILED) as session:
        for i in range(3):
            before, after = session.run([old, new])
            np.testing.assert_array_equal(before, np.full(4, 3.0 + 6 * i))
            np.testing.assert_array_equal(after, np.full(4, 9.0 + 6 * i))


def test_shapes_that_depend_on_data_are_planned_when_they_are_known() -> None:
    x = hr.placeholder(hr.float32, [None])
    positive = hr.boolean_mask(x, x > 0)
    values, _ = hr.unique(positive)
    total = hr.reduce_sum(hr.exp(values) * 2.0)
    size = hr.size(positive)
    with open_session(**COMPILED) as session:
        for data in ([1, -1, 1, 2], [], [-1], [3, 3]):
            array = np.array(data, np.float32)
            expected = 2 * np.exp(np.unique(array[array > 0])).sum()
            found, count = session.run([total, size], {x: array})
            assert found == pytest.approx(expected, rel=1e-5)
            assert count == (array > 0).sum()


THREADS, STEPS = 8, 60


@pytest.mark.timeout(60)
def test_steps_of_many_threads_each_have_an_arena() -> None:
    x = hr.placeholder(hr.float32, [None, 6])
    y = hr.reduce_sum(hr.tanh(hr.matmul(x, hr.transpose(x)) * 0.1) + 1.0, axis=1)
    wrong: list[str] = []
    with open_session(**COMPILED) as session:

        def work(seed: int) -> None:
            rng = np.random.default_rng(seed)
            for _ in range(STEPS):
                value = rng.standard_normal((rng.integers(1, 5), 6), dtype=np.float32)
                expected = (np.tanh(value @ value.T * 0.1) + 1).sum(1)
                found = session.run(y, {x: value})
                if not np.allclose(found, expected, rtol=1e-4):
                    wrong.append(f"{found} for {expected}")

        run_all([threading.Thread(target=work, args=(i,)) for i in range(THREADS)])
    assert wrong == []


@pytest.mark.timeout(60)
def test_concurrent_updates_are_atomic_and_readers_see_whole_values() -> None:
    v, w = hr.Variable(hr.zeros([64, 64])), hr.Variable(hr.zeros([64, 64]))
    one = hr.placeholder(hr.float32, [])
    # Both steps change both variables, in different orders.
    first = hr.group(
        hr.assign_add(v, one * hr.ones([64, 64])), hr.assign_add(w, one + hr.zeros_like(w))
    )
    second = hr.group(
        hr.assign_add(w, one * hr.ones([64, 64])), hr.assign_add(v, one + hr.zeros_like(v))
    )
    torn: list[float] = []
    done = threading.Event()
    with open_session(**COMPILED) as session:

        def write(op: Any) -> None:
            for _ in range(STEPS):
                session.run(op, {one: 1.0})

        def read() -> None:
            while not done.is_set():
                values = session.run([v, w])
                torn.extend(float(a.max() - a.min()) for a in values if a.max() != a.min())

        readers = [threading.Thread(target=read) for _ in range(2)]
        for thread in readers:
            thread.start()
        run_all([threading.Thread(target=write, args=((first, second)[i % 2],)) for i in range(4)])
        done.set()
        for thread in readers:
            thread.join()
        assert torn == []
        for value in session.run([v, w]):
            np.testing.assert_array_equal(value, np.full((64, 64), 4.0 * STEPS))


def run_all(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@TRAINS
def test_the_source_of_a_program_is_readable_python() -> None:
    x, loss, step, _ = train()
    with open_session(**COMPILED) as session:
        session.run([loss, step], {x: BATCH})
        plan = next(p.step.plan for p in session._prepared.values() if p.fetches.targets == (step,))
        (program,) = plan.nodes[0].region.programs.values()
    compile(program.source, "<program>", "exec")
    assert "def run(values):" in program.source
    assert "take_two(" in program.source


@TRAINS
def test_long_runs_keep_neither_memory_nor_programs() -> None:
    x, loss, step, _ = train()
    with open_session(**COMPILED) as session:
        call = session.make_callable([loss, step], [x])
        call(BATCH)
        threads = threading.active_count()
        operations = len(session.graph.operations)
        for _ in range(300):
            call(BATCH)
        assert threading.active_count() == threads
        assert len(session.graph.operations) == operations


def _constant_behind(x: hr.Tensor) -> hr.Tensor:
    with hr.control_dependencies([hr.identity(x)]):
        return hr.identity(hr.constant([1.0, 2.0]))


@pytest.mark.parametrize(
    ("build", "computes"),
    [
        (lambda x: hr.identity(hr.reshape(x, [2, 3])), False),
        (_constant_behind, False),
        (lambda x: hr.zeros_like(x) / x, True),
    ],
    ids=["views", "constant", "division"],
)
def test_what_only_moves_values_sets_no_floating_point_mode(build: Any, computes: bool) -> None:
    x = hr.placeholder(hr.float32, [6])
    fetched = build(x)
    with open_session(compile_after=100) as session:
        session.run(fetched, {x: np.zeros(6, np.float32)})
        (program,) = programs(session, fetched)
    assert ("errstate" in program.source) == computes
