"""A value goes from step to step; who waits is served, or ended with its step."""

import threading
import time

import pytest

import headrace as hr
from headrace.errors import CancelledError, DTypeError, ResourceError, SessionClosedError


@pytest.mark.parametrize("executor", ["plan", "plain"])
def test_the_newest_value_comes_out_once(executor):
    box = hr.Mailbox(hr.float32)
    x = hr.placeholder(hr.float32, None)
    put, take = box.put(x), box.take()
    with hr.Session(config=hr.Config(executor=executor)) as session:
        session.run(put, {x: 1.0})
        session.run(put, {x: [2.0, 3.0]})
        assert session.run(take * 2).tolist() == [4.0, 6.0]


def test_a_step_waits_until_another_puts_something_in():
    box = hr.Mailbox(hr.int32)
    x = hr.placeholder(hr.int32, [])
    put, taken = box.put(x), box.take() + 1
    got = []
    with hr.Session() as session:
        thread = threading.Thread(target=lambda: got.append(int(session.run(taken))))
        thread.start()
        time.sleep(0.05)
        session.run(put, {x: 41})
        thread.join(10)
    assert got == [42]


def test_closing_the_session_ends_the_waiting():
    taken = hr.Mailbox(hr.int32).take()
    session = hr.Session()
    threading.Timer(0.1, session.close).start()
    with pytest.raises((CancelledError, SessionClosedError), match="closed"):
        session.run(taken)


def test_mailboxes_of_one_name_are_one_and_hold_one_dtype():
    first, second = (hr.Mailbox(hr.int32, shared_name="m") for _ in range(2))
    other = hr.Mailbox(hr.string, shared_name="m")
    with hr.Session() as session:
        session.run(first.put(7))
        assert session.run(second.take()) == 7
        with pytest.raises(ResourceError, match="two ways: dtype int32 and string"):
            session.run(other.put(b"x"))
    with pytest.raises(DTypeError, match="the mailbox holds int32, got float32"):
        first.put(1.0)
