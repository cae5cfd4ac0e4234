"""Steps whose nodes wait one after the other: what runs when, and what is left of a failure."""

import threading

import pytest

import headrace as hr
from headrace.errors import (
    CancelledError,
    InvalidArgumentError,
    OutOfRangeError,
    UninitializedError,
)
from headrace.runtime.concurrency.concurrent_steps import ABREAST
from headrace.runtime.execution import executor
from tests.waiting import wait_until

pytestmark = pytest.mark.needs("backend-cpu")


@pytest.fixture
def chains(monkeypatch):
    """Count the runs of each kind, by the names of their classes."""
    counts = {"ChainRun": 0, "DataflowRun": 0}

    def counting(name, kind):
        def make(*args, **kwargs):
            counts[name] += 1
            return kind(*args, **kwargs)

        return make

    for name in counts:
        monkeypatch.setattr(executor, name, counting(name, getattr(executor, name)))
    return counts


def test_elements_go_from_queue_to_queue_and_are_counted_in_between(chains):
    first, second = hr.FIFOQueue(10, hr.int32, []), hr.FIFOQueue(10, hr.int32, [])
    fill = first.enqueue_many([[1, 2, 3]])
    move = second.enqueue(first.dequeue() * 10)
    taken = second.dequeue_many(3)
    with hr.Session() as session:
        session.run(fill)
        for _ in range(3):
            session.run(move)
        assert session.run(taken).tolist() == [10, 20, 30]
    assert chains == {"ChainRun": 5, "DataflowRun": 0}


def test_what_waits_at_the_same_time_is_no_chain(chains):
    queues = [hr.FIFOQueue(3, hr.int32, []) for _ in range(2)]
    fill = [queue.enqueue(number) for number, queue in enumerate(queues)]
    both = [queue.dequeue() for queue in queues]
    with hr.Session() as session:
        session.run(fill)
        assert session.run(both) == [0, 1]
    assert chains == {"ChainRun": 0, "DataflowRun": 2}


def test_what_does_not_need_an_element_goes_on_while_it_is_waited_for(chains):
    queue = hr.FIFOQueue(3, hr.int32, [])
    taken, given = queue.dequeue(), queue.enqueue(7)
    counter = hr.Variable(0)
    count = hr.assign_add(counter, 1)
    found = []
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        thread = threading.Thread(target=lambda: found.append(session.run([taken, count])))
        thread.start()
        wait_until(lambda: session.run(counter) == 1)
        assert not found
        session.run(given)
        thread.join(30)
    assert found == [[7, 1]]
    assert not chains["DataflowRun"]


@pytest.mark.parametrize("optimize", [True, False])
def test_variables_are_read_when_what_they_are_needed_with_has_come(optimize):
    queue = hr.FIFOQueue(3, hr.int32, [])
    v = hr.Variable(1)
    told, total = hr.assign(v, 10), queue.dequeue() + v
    given, found = queue.enqueue(5), []
    with hr.Session(config=hr.Config(optimize=optimize)) as session:
        session.run(hr.global_variables_initializer())
        thread = threading.Thread(target=lambda: found.append(session.run(total)))
        thread.start()
        wait_until(lambda: len(session._runtime._running) == 1)
        session.run(told)
        session.run(given)
        thread.join(30)
    assert found == [15]


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("waits", [1, 2])
def test_a_variable_without_a_value_is_told_of_before_anything_is_waited_for(waits, optimize):
    over = threading.Event()
    threading.Thread(target=over.wait, daemon=True).start()
    first, second = hr.FIFOQueue(3, hr.int32, []), hr.FIFOQueue(3, hr.int32, [])
    taken = first.dequeue()
    if waits == 2:
        with hr.control_dependencies([taken]):
            taken += second.dequeue()
    v = hr.Variable(1, name="lost")
    total, given = taken * v, first.enqueue(5)
    config = hr.Config(optimize=optimize, timeout=20)
    with hr.Session(config=config) as session:
        with pytest.raises(UninitializedError, match=r"1 variable is not initialized: lost") as no:
            session.run(total)
        assert "in ReadVariable" in str(no.value)
        assert __file__.rpartition("/")[2] in str(no.value)
        # What it waited for stays with those who come after it.
        session.run(given)
        assert session.run(first.dequeue()) == 5
    over.set()


def test_reads_are_moved_over_no_effect(chains):
    queue, v = hr.FIFOQueue(30, hr.int32, []), hr.Variable(1)
    total, told = queue.dequeue() + v.read_value(), hr.assign_add(v, 10)
    fill = queue.enqueue_many([[5] * 20])
    with hr.Session() as session:
        session.run([hr.global_variables_initializer(), fill])
        found = [session.run([total, told]) for _ in range(4)]
    assert found == [[6 + 10 * i, 11 + 10 * i] for i in range(4)]
    assert not chains["DataflowRun"]


def test_what_waits_reads_its_own_inputs_before(chains):
    first, second = hr.FIFOQueue(9, hr.int32, []), hr.FIFOQueue(9, hr.int32, [])
    v = hr.Variable(2)
    put, move = first.enqueue(v * 3), second.enqueue(first.dequeue() + v)
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        session.run(put)
        session.run(move)
        assert session.run(second.dequeue()) == 8
    assert not chains["DataflowRun"]


def test_a_step_that_fails_beside_its_wait_takes_nothing(chains):
    queue = hr.FIFOQueue(3, hr.int32, [])
    taken, given = queue.dequeue(), queue.enqueue(7)
    wrong = hr.placeholder(hr.int32, [])
    checked = hr.check_numerics(hr.log(hr.cast(wrong, hr.float32)), "no logarithm")
    with hr.Session() as session:
        with pytest.raises(InvalidArgumentError, match="no logarithm"):
            session.run([taken, checked], {wrong: -1})
        session.run(given)
        assert session.run(queue.size()) == 1
        assert session.run(taken) == 7
    assert not chains["DataflowRun"]


def test_the_end_of_a_queue_names_the_operation_that_waited(chains):
    first, second = hr.FIFOQueue(3, hr.int32, []), hr.FIFOQueue(3, hr.int32, [])
    move = second.enqueue(first.dequeue(name="take"))
    with hr.Session() as session:
        session.run(first.close())
        with pytest.raises(OutOfRangeError, match="'take'"):
            session.run(move)
    assert not chains["DataflowRun"]


def test_closing_a_session_ends_a_chain_at_its_second_wait():
    first, second = hr.FIFOQueue(3, hr.int32, []), hr.FIFOQueue(1, hr.int32, [])
    fill, full = first.enqueue(1), second.enqueue(2)
    move = second.enqueue(first.dequeue())
    raised = []

    def run():
        try:
            session.run(move)
        except CancelledError as error:
            raised.append(error)

    session = hr.Session()
    session.run([fill, full])
    thread = threading.Thread(target=run)
    thread.start()
    wait_until(lambda: session.run(first.size()) == 0)
    session.close()
    thread.join(30)
    assert len(raised) == 1


def test_steps_that_run_beside_each_other_are_seen(monkeypatch):
    monkeypatch.setattr(ABREAST, "seen", False)
    queue = hr.FIFOQueue(3, hr.int32, [])
    taken, given = queue.dequeue(), queue.enqueue(7)
    with hr.Session() as session:
        session.run(given)
        session.run(taken)
        assert not ABREAST.seen
        thread = threading.Thread(target=lambda: session.run(taken))
        thread.start()
        wait_until(lambda: len(session._runtime._running) == 1)
        session.run(given)
        thread.join(30)
    assert ABREAST.seen
