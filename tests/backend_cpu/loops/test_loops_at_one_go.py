"""Loops at one go: bits and errors as round by round, and they can be interrupted."""

from __future__ import annotations

import _thread
import resource
import threading
import time

import numpy as np
import pytest

import headrace as hr
from headrace.errors import DeadlineExceededError, HeadraceError
from headrace.runtime.control_flow import device_loops as rounds
from headrace.runtime.control_flow.device_loops import LoopRunner
from headrace_cpu.loops import columns, loop_run
from tests.backend_cpu.loops.one_by_one import round_by_round

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

RNG = np.random.default_rng(0)
X = RNG.standard_normal((7, 3, 4)).astype(np.float32)
W = (RNG.standard_normal((8, 4)) / 3).astype(np.float32)
SOME = np.array([5, 0, 3, 6, 1, 2, 4], np.int32)


def cell(h, x):
    return hr.tanh(hr.matmul(hr.concat([x, h], 1), hr.constant(W)))


def start():
    return hr.zeros([3, 4])


def times(body, *first, n=None):
    return hr.while_loop(
        lambda t, *_: t < (7 if n is None else n), lambda t, *v: (t + 1, *body(t, *v)), [0, *first]
    )[1:]


def by_index(x, n):
    return times(lambda t, h: [cell(h, x[t])], start(), n=n)


def from_the_end(x, n):
    return times(lambda t, h: [cell(h, x[-1])], start(), n=n)


def written(x, n):
    given = hr.TensorArray(hr.float32, 7).unstack(x)

    def body(t, h, made):
        h = cell(h, given.read(t))
        return h, made.write(t, h * 2.0)

    h, made = times(body, start(), hr.TensorArray(hr.float32, 7, element_shape=[3, 4]), n=n)
    return h, made.stack() if n is None else made.read(0)


def written_only(x, n):
    made = hr.TensorArray(hr.float32, 7, element_shape=[3, 4])
    (made,) = times(lambda t, m: [m.write(t, x[t] * 3.0 + 1.0)], made, n=n)
    return made.stack() if n is None else made.read(0)


def any_order(x, n):
    made = hr.TensorArray(hr.float32, 7, element_shape=[3, 4])
    order = hr.TensorArray(hr.int32, 7).unstack(hr.constant(SOME))

    def body(t, h, made):
        h = cell(h, x[order.read(t)])
        return h, made.write(order.read(t), h)

    h, made = times(body, start(), made, n=n)
    return h, made.stack() if n is None else made.read(5)


def scanned(x, n):
    return hr.scan(cell, x, start())


def scanned_backwards(x, n):
    return hr.scan(cell, x, start(), reverse=True)


def pair(x, n):
    def body(state, now):
        h, c = state
        c = c * hr.sigmoid(now) + hr.tanh(h)
        return hr.tanh(c) * 0.5, c

    return hr.scan(body, x, (start(), start()))


def mapped(x, n):
    return hr.map_fn(lambda row: hr.tanh(row) * 2.0 - row, x)


def network(x, n):
    kind = hr.nn.rnn_cell.BasicLSTMCell(4)
    with hr.variable_scope("net", initializer=hr.constant_initializer(0.2)):
        found, _ = hr.nn.dynamic_rnn(kind, x, time_major=True, dtype=hr.float32)
    return found


def network_of_lengths(x, n):
    kind = hr.nn.rnn_cell.GRUCell(4)
    with hr.variable_scope("net", initializer=hr.constant_initializer(0.2)):
        lengths = hr.constant([7, 2, 0])
        found, _ = hr.nn.dynamic_rnn(kind, x, lengths, time_major=True, dtype=hr.float32)
    return found


def numbers_of_the_round(x, n):
    return times(lambda t, h: [h * 0.5 + hr.cast(t, "float32") * x[t]], start(), n=n)


def whole_numbers(x, n):
    return times(lambda t, k, b: [k * 3 + t, hr.logical_xor(b, k > 5)], 1, True, n=n)


def doubles(x, n):
    return times(lambda t, h: [h * 0.9 + hr.cast(x[t], "float64")], np.zeros((3, 4)), n=n)


def the_one_before(x, n):
    return times(lambda t, a, b, c: [cell(a, x[t]), a, b], start(), start() + 1.0, start(), n=n)


def changing_places(x, n):
    return times(lambda t, a, b, c: [b, a, c * a + x[t]], start(), start() + 1.0, start(), n=n)


def left_alone(x, n):
    return times(lambda t, a, b: [a + b * x[t], b], start(), start() + 2.0, n=n)


def of_another_shape(x, n):
    def body(t, a):
        return [hr.reshape(hr.tanh(hr.reshape(a, [4, 3]) + 1.0), [3, 4]) + x[t]]

    return times(body, start(), n=n)


def handed_on_in_another_shape(x, n):
    return times(
        lambda t, a: [hr.reshape(hr.tanh(hr.reshape(a * a + x[t], [4, 3])), [3, 4])], start(), n=n
    )


def parts_of_numbers(x, n):
    first, last = hr.reshape(x, [84]), hr.constant(SOME)
    return times(lambda t, s: [s * first[last[t]] + first[-3] * first[t]], hr.constant(0.5), n=n)


def computed_places(x, n):
    return times(lambda t, k, s: [(k * 3 + 1) % 7, s * 0.5 + x[k]], 2, start(), n=n)


def handed_on_places(x, n):
    order = hr.constant(SOME)
    return times(lambda t, k, s: [order[t], s * 0.5 + x[k]], 2, start(), n=n)


def written_at_computed_places(x, n):
    made = hr.TensorArray(hr.float32, 7, element_shape=[3, 4])
    k, made = times(lambda t, k, m: [(k * 3 + 1) % 7, m.write(t, x[t])], 2, made, n=n)
    return k, made.stack() if n is None else made.read(0)


def within(x, n):
    def body(t, h):
        (found,) = times(lambda s, g: [hr.tanh(g + x[s])], h)
        return [found * 0.5]

    return times(body, start(), n=n)


def swapped(x, n):
    return hr.while_loop(
        lambda t, h: t < (7 if n is None else n),
        lambda t, h: (t + 1, cell(h, x[t])),
        [0, start()],
        swap_memory=True,
        parallel_iterations=3,
    )[1]


def summed(x, n):
    return times(lambda t, s: [s + hr.reduce_sum(x[t])], hr.constant(0.0), n=n)


# Loops of x [7, 3, 4] and of a number of rounds, which some of them ask for, with how the explained
# step says that their rounds run, and those of the gradient.
LOOPS = {
    "by index": (by_index, "many", "many"),
    "always the last": (from_the_end, "many", "many"),
    "written": (written, "many", "many"),
    "written only": (written_only, "many", "many"),
    "in any order": (any_order, "many", "many"),
    "scan": (scanned, "many", "many"),
    "scan backwards": (scanned_backwards, "many", "many"),
    "scan of a pair": (pair, "many", "many"),
    "map": (mapped, "many", "many"),
    "dynamic_rnn": (network, "many", "many"),
    "dynamic_rnn of lengths": (network_of_lengths, "many", "many"),
    "numbers of the round": (numbers_of_the_round, "many", "many"),
    "whole numbers": (whole_numbers, "many", "many"),
    "doubles": (doubles, "many", "many"),
    "the one before": (the_one_before, "many", "many"),
    "changing places": (changing_places, "variables change places", None),
    "left alone": (left_alone, "many", "many"),
    "of another shape": (of_another_shape, "many", "many"),
    "handed on in another shape": (handed_on_in_another_shape, "many", "many"),
    "parts of numbers": (parts_of_numbers, "many", None),
    "computed places": (computed_places, "depends on what is computed in the loop", None),
    "handed on places": (handed_on_places, None, None),
    "written beside computed places": (written_at_computed_places, "many", "many"),
    "a loop within": (within, "many", None),
    "swapped": (swapped, "many", "many"),
    "sums": (summed, "many", "many"),
}
# Their number of rounds is that of their items.
WHOLE = {n for n, (f, *_) in LOOPS.items() if f in (scanned, scanned_backwards, pair, mapped)}
WHOLE |= {"dynamic_rnn", "dynamic_rnn of lengths"}
EXACT = {"compile_after": 0, "compile_wait": True, "threads": 1}


def runs(build, config, n=None, wrt=False, steps=3):
    """Return what the last of some steps yields, and the explanation of the step."""
    with hr.Graph().as_default():
        x = hr.placeholder("float32", [7, 3, 4])
        fed = {x: X}
        rounds = None
        if n is not None:
            rounds = hr.placeholder("int32", [])
            fed[rounds] = n
        found = build(x, rounds)
        found = list(found) if isinstance(found, list | tuple) else [found]
        floats = [f for f in found if f.dtype.is_floating]
        if wrt and floats:
            found += [g for g in hr.gradients(floats, [x]) if g is not None]
        with hr.Session(config=hr.Config(**config)) as session:
            session.run(hr.global_variables_initializer())
            for _ in range(steps):
                values = session.run(found, fed)
            return values, session.explain(found, fed)


def told(explained):
    return [part.rounds for part in explained.walk() if part.title.startswith("While")]


@pytest.fixture
def by_rounds(monkeypatch):
    """Return the function that runs something with rounds that run one by one."""

    def run(*given, **named):
        with monkeypatch.context() as patch:
            round_by_round(patch)
            return runs(*given, **named)[0]

    return run


def alike(one, other):
    for a, b in zip(one, other, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("wrt", [False, True], ids=["forwards", "gradients"])
@pytest.mark.parametrize("name", LOOPS)
def test_loops_yield_the_bits_of_rounds_that_run_one_by_one(name, wrt, by_rounds):
    build, way, way_back = LOOPS[name]
    found, explained = runs(build, EXACT, wrt=wrt)
    alike(found, by_rounds(build, EXACT, wrt=wrt))
    plain, _ = runs(build, {"executor": "plain"}, wrt=wrt)
    for a, b in zip(found, plain, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)
    notes = told(explained)
    for wanted in [way, way_back] if wrt else [way]:
        assert wanted is None or any(wanted in note for note in notes), notes
    if way_back == "many":
        assert set(notes) == {"runs many rounds at one go"}, notes


@pytest.mark.parametrize("build", [computed_places, handed_on_places])
def test_places_are_not_read_before_they_are_there(build, by_rounds, monkeypatch):
    # What memory holds that nothing was written to may be a place that there is.
    monkeypatch.setattr(np, "empty", np.zeros)
    alike(runs(build, EXACT)[0], by_rounds(build, EXACT))


def picked(x, n):
    """Read a row that is not there in the sixth round."""
    rows = hr.constant(np.arange(12.0, dtype=np.float32).reshape(4, 3))
    places = hr.constant(np.array([0, 1, 2, 3, 0, 9, 1], np.int32))
    return times(lambda t, s: [s + hr.reduce_sum(hr.gather(rows, places[t]))], 0.0)


def written_twice(x, n):
    made = hr.TensorArray(hr.float32, 7, element_shape=[3, 4], clear_after_read=False)
    order = hr.TensorArray(hr.int32, 7).unstack(hr.constant(SOME // 2))
    return times(lambda t, m: [m.write(order.read(t), x[t])], made)[0].stack()


def beyond_the_end(x, n):
    made = hr.TensorArray(hr.float32, 5, element_shape=[3, 4])
    return times(lambda t, m: [m.write(t, x[t])], made)[0].stack()


def read_beyond_the_end(x, n):
    given = hr.TensorArray(hr.float32, 7).unstack(x)
    return times(lambda t, s: [s + given.read(t + 2)], start())


# Loops that fail in some round, and what is said.
FAILING = {
    "gather": (picked, "index 9 is out of range"),
    "written twice": (written_twice, "was written already"),
    "beyond the end": (beyond_the_end, "index 5 is out of range for a list of 5"),
    "read beyond the end": (read_beyond_the_end, "index 7 is out of range for a list of 7"),
}


@pytest.mark.parametrize("name", FAILING)
def test_what_fails_in_a_round_is_told_as_by_the_round(name, by_rounds):
    build, message = FAILING[name]
    said = []
    for run in (runs, by_rounds):
        with pytest.raises(HeadraceError, match=message) as caught:
            run(build, EXACT)
        said.append(str(caught.value))
    assert said[0] == said[1]


@pytest.mark.parametrize("name", FAILING)
def test_loops_go_on_after_one_that_failed(name):
    build, message = FAILING[name]
    with hr.Graph().as_default():
        x = hr.placeholder("float32", [7, 3, 4])
        good = hr.reduce_sum(by_index(x, None)[0])
        bad = build(x, None)
        with hr.Session(config=hr.Config(**EXACT)) as session:
            wanted = session.run(good, {x: X})
            for _ in range(3):
                with pytest.raises(HeadraceError, match=message):
                    session.run(bad, {x: X})
                assert session.run(good, {x: X}) == wanted


def test_indices_that_are_wrong_now_and_then():
    with hr.Graph().as_default():
        places = hr.placeholder("int32", [7])
        rows = hr.constant(np.arange(12.0, dtype=np.float32).reshape(4, 3))
        (s,) = times(lambda t, s: [s + hr.reduce_sum(hr.gather(rows, places[t]))], 0.0)
        with hr.Session(config=hr.Config(**EXACT)) as session:
            for wrong in (False, True, False, True, False):
                given = np.full(7, 2, np.int32)
                given[4] = 7 if wrong else 1
                if wrong:
                    with pytest.raises(HeadraceError, match="index 7 is out of range"):
                        session.run(s, {places: given})
                else:
                    assert session.run(s, {places: given}) == 6 * 21 + 12


LONG = 400_000_000


def endless():
    """Return a loop that would take minutes, after a short run has made it one of kernels."""
    n = hr.placeholder("int32", [])
    (s,) = times(lambda t, s: [hr.tanh(s) + 0.1], np.ones((3, 4), np.float32), n=n)
    return n, s


def test_a_long_loop_notices_that_its_time_is_over():
    with hr.Graph().as_default():
        n, s = endless()
        with hr.Session(config=hr.Config(**EXACT)) as session:
            for _ in range(2):
                session.run(s, {n: 50})
            began = time.monotonic()
            with pytest.raises(DeadlineExceededError, match="timeout"):
                session.run(s, {n: LONG}, options=hr.RunOptions(timeout_in_ms=300))
            assert time.monotonic() - began < 5
            session.run(s, {n: 50})


@pytest.mark.usefixtures("interrupts")
def test_a_long_loop_is_interrupted():
    with hr.Graph().as_default():
        n, s = endless()
        with hr.Session(config=hr.Config(**EXACT)) as session:
            for _ in range(2):
                session.run(s, {n: 50})
            timer = threading.Timer(0.3, _thread.interrupt_main)
            timer.start()
            began = time.monotonic()
            with pytest.raises(KeyboardInterrupt):
                session.run(s, {n: LONG})
            assert time.monotonic() - began < 5
            timer.join()
            session.run(s, {n: 50})


def test_a_loop_runs_beside_what_waits():
    with hr.Graph().as_default():
        x = hr.placeholder("float32", [7, 3, 4])
        queue = hr.FIFOQueue(1, [hr.float32], [[]])
        number, item = hr.placeholder("float32", []), queue.dequeue()
        put = queue.enqueue(number)
        h, made = written(x + 0.0, None)
        with hr.Session(config=hr.Config(**EXACT, timeout=20.0)) as session:
            wanted = None
            for k in range(4):
                timer = threading.Timer(0.05, session.run, (put, {number: float(k)}))
                timer.start()
                found = session.run([h, made, item], {x: X})
                timer.join()
                assert found[2] == k
                wanted = wanted or found[:2]
                alike(found[:2], wanted)
            assert told(session.explain([h, made, item], {x: X})) == ["runs many rounds at one go"]


def test_steps_that_run_at_the_same_time_have_memory_of_their_own():
    with hr.Graph().as_default():
        x = hr.placeholder("float32", [7, 3, 4])
        h, made = written(x, None)
        with hr.Session(config=hr.Config(**EXACT)) as session:
            fed = [{x: X * k} for k in range(4)]
            wanted = [session.run([h, made], f) for f in fed]
            wrong = []

            def work(k):
                for _ in range(50):
                    found = session.run([h, made], fed[k])
                    wrong.extend(k for a, b in zip(found, wanted[k], strict=True) if (a != b).any())

            threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert not wrong


def test_values_of_one_step_stay_as_they_are_in_the_next():
    with hr.Graph().as_default():
        x = hr.placeholder("float32", [7, 3, 4])
        h, made = written(x, None)
        with hr.Session(config=hr.Config(**EXACT)) as session:
            for _ in range(2):
                session.run([h, made], {x: X})
            found = session.run([h, made], {x: X})
            kept = [np.array(f) for f in found]
            session.run([h, made], {x: -X})
            alike(found, kept)


@pytest.mark.parametrize(
    "config",
    [{"threads": 2}, {"deterministic": True}, {"onednn": False}],
    ids=str,
)
@pytest.mark.parametrize("name", ["written", "scan of a pair", "dynamic_rnn"])
def test_loops_yield_the_same_bits_however_kernels_run(name, config, by_rounds):
    build = LOOPS[name][0]
    config = {**EXACT, **config}
    found, explained = runs(build, config, wrt=True)
    assert "runs many rounds at one go" in told(explained)
    alike(found, by_rounds(build, config, wrt=True))


@pytest.mark.parametrize("name", ["written", "scan of a pair", "dynamic_rnn", "the one before"])
def test_what_is_large_is_kept_in_arrays_by_themselves(name, by_rounds, monkeypatch):
    monkeypatch.setattr(columns, "LARGE_BYTES", 40)
    build = LOOPS[name][0]
    alike(runs(build, EXACT, wrt=True)[0], by_rounds(build, EXACT, wrt=True))


PRODUCTS = [
    (dtype, rows, units)
    for dtype in ("float32", "float64")
    for rows, units in ((1, 32), (1, 256), (4, 32), (32, 32), (32, 256), (256, 32), (200, 200))
]


@pytest.mark.parametrize("config", [{}, {"onednn": False}, {"threads": 2}], ids=str)
@pytest.mark.parametrize(("dtype", "rows", "units"), PRODUCTS)
def test_products_of_all_sizes_yield_the_same_bits(dtype, rows, units, config, by_rounds):
    rng = np.random.default_rng(rows)
    start, weights = rng.normal(size=(rows, units)), rng.normal(size=(units, units)) / units

    def build(x, n):
        first, w = hr.constant(start, dtype), hr.constant(weights, dtype)
        return times(lambda t, h: [hr.tanh(hr.matmul(h, w) + hr.matmul(h, w, False, True))], first)

    config = {**EXACT, **config}
    found, explained = runs(build, config)
    alike(found, by_rounds(build, config))
    (way,) = told(explained)

    assert way == "runs many rounds at one go"


@pytest.mark.parametrize("after", [1, 2, 3])
@pytest.mark.parametrize(
    "name", ["written", "scan of a pair", "dynamic_rnn", "numbers of the round"]
)
def test_a_first_run_goes_on_at_one_go_when_its_kernels_are_there(
    name, after, by_rounds, monkeypatch
):
    build = LOOPS[name][0]
    config = {**EXACT, "compile_after": after}
    wanted = by_rounds(build, config, wrt=True, steps=1)
    begun, start = [], LoopRunner.start

    def noted(self, arguments, count):
        run = start(self, arguments, count)
        begun.append((count, run is not None))
        return run

    monkeypatch.setattr(LoopRunner, "start", noted)
    monkeypatch.setattr(rounds, "_FEWEST", 2)
    found, _ = runs(build, config, wrt=True, steps=1)
    alike(found, wanted)
    assert (7, False) in begun
    assert any(went for count, went in begun if count < 7)


@pytest.mark.parametrize("many", [1, 3, 5])
@pytest.mark.parametrize(
    "name", ["numbers of the round", "whole numbers", "scan", "swapped", "the one before"]
)
def test_loops_run_in_slices_of_any_length(name, many, by_rounds, monkeypatch):
    monkeypatch.setattr(loop_run, "_MOST_ROUNDS", many)
    build = LOOPS[name][0]
    alike(runs(build, EXACT, wrt=True)[0], by_rounds(build, EXACT, wrt=True))


def test_a_counter_of_many_rounds_takes_no_memory():
    with hr.Graph().as_default():
        n = hr.placeholder("int32", [])
        (s,) = times(lambda t, s: [hr.maximum(s, t)], 0, n=n)
        with hr.Session(config=hr.Config(**EXACT)) as session:
            session.run(s, {n: 50})
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            assert session.run(s, {n: 5_000_000}) == 4_999_999
            # In KiB; its values would take 20 MB.
            assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4000


def test_a_session_that_measures_runs_round_by_round():
    _, explained = runs(by_index, {**EXACT, "profile": True})
    assert told(explained) == ["runs round by round: the session measures each kernel"]


FED = [
    (name, n)
    for name in sorted(set(LOOPS) - WHOLE - {"in any order", "a loop within"})
    for n in (0, 1, 3, 4, 5, 7)
    # Of no rounds nothing was written that could be read.
    if n or "written" not in name
]


@pytest.mark.parametrize(("name", "n"), FED)
def test_the_number_of_rounds_may_be_fed(name, n, by_rounds):
    build = LOOPS[name][0]
    wrt = n > 0 and "written" not in name
    alike(runs(build, EXACT, n=n, wrt=wrt)[0], by_rounds(build, EXACT, n=n, wrt=wrt))
