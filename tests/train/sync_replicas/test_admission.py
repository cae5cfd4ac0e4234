"""Who is admitted to a step, and who gets a token, without a graph around it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from headrace.errors import CancelledError, DeadlineExceededError, OutOfRangeError
from headrace.extend.devices import DeviceName
from headrace.extend.runtime import Cancellation, outlive_tasks, tell_loss
from headrace_train.sync_replicas.admission import CHIEF, UNKNOWN, Admission

REFUSED = -1


class Answers(list[Any]):
    """What kernels that wait are answered."""

    def __init__(self, admission: Admission) -> None:
        self.admission = admission

    def token(self, replica: int, timeout_secs: float = 60.0, number: int = -1) -> None:
        self.admission.token(replica, timeout_secs, self.append, None, number)

    def admitted(self) -> None:
        self.admission.admitted(self.append, None)


def made(wanted: int, total: int) -> tuple[Admission, Answers]:
    admission = Admission("a", wanted, total, ())
    return admission, Answers(admission)


def test_numbers_come_out_in_the_order_of_the_replicas() -> None:
    admission, answers = made(3, 3)
    answers.admitted()
    assert [admission.admit(replica, 0) for replica in (2, 0)] == [0, 1]
    assert answers == []
    assert admission.admit(1, 0) == 2
    assert answers == [[1, 2, 0]]


def test_several_gradients_of_each_come_in_rounds() -> None:
    admission, answers = made(4, 2)
    assert [admission.admit(r, 0) for r in (1, 1, 1, 0, 0)] == [0, 1, REFUSED, 2, 3]
    answers.admitted()
    assert answers == [[2, 0, 3, 1]]


def test_replicas_that_are_unknown_come_as_they_come() -> None:
    admission, answers = made(3, 3)
    assert [admission.admit(r, 0) for r in (UNKNOWN, UNKNOWN, 1, UNKNOWN)] == [0, 1, 2, REFUSED]
    answers.admitted()
    assert answers == [[2, 0, 1]]


def test_what_is_stale_or_too_much_is_refused_and_counted() -> None:
    admission, answers = made(2, 3)
    admission.open(7)
    assert admission.admit(0, 6) == REFUSED
    assert [admission.admit(r, 7) for r in (0, 0, 1, 2)] == [0, REFUSED, 1, REFUSED]
    answers.admitted()
    admission.finish(8, 3)
    assert admission.admit(2, 7) == REFUSED
    assert admission.counters()[:2] == [2, 4]


def test_nobody_applies_a_step_twice() -> None:
    admission, answers = made(1, 1)
    admission.admit(0, 0)
    answers.admitted()
    answers.admitted()
    assert answers == [[0]]
    admission.finish(1, 1)
    assert admission.admit(0, 1) == 1
    assert answers == [[0], [1]]


def test_a_replica_takes_no_more_tokens_of_a_step_than_the_others() -> None:
    admission, answers = made(2, 3)
    admission.finish(1, 3)
    answers.token(0)
    answers.token(0)
    answers.token(1)
    assert answers == [1, 1]
    admission.finish(2, 3)
    assert answers == [1, 1, 2]


def test_first_tokens_are_shared_out_and_stay() -> None:
    admission, answers = made(2, 2)
    admission.add_tokens(0, 2)
    answers.token(0)
    answers.token(0)
    assert answers == [0]
    admission.finish(1, 2)
    answers.token(1)
    assert answers == [0, 1, 0]


def test_a_slow_replica_goes_on_with_the_step_that_the_others_are_in() -> None:
    admission, answers = made(2, 3)
    for step in range(5):
        for replica in (0, 1):
            admission.admit(replica, step)
        answers.admitted()
        admission.finish(step + 1, 3)
        answers.token(0)
        answers.token(1)
        assert answers[-2:] == [step + 1, step + 1]
    assert admission.admit(2, 0) == REFUSED
    answers.token(2)
    assert answers[-1] == 5


def test_who_leaves_is_not_waited_for() -> None:
    admission, answers = made(3, 3)
    answers.admitted()
    admission.admit(0, 0)
    admission.admit(1, 0)
    assert answers == []
    admission.leave(2)
    admission.leave(2)
    assert answers == [[0, 1]]
    assert admission.counters()[4] == 2
    admission.join(2)
    assert admission.counters()[4] == 3


def test_who_is_left_brings_no_more_than_before() -> None:
    admission, answers = made(3, 4)
    for replica in (2, 3):
        admission.leave(replica)
    assert [admission.admit(r, 0) for r in (0, 0, 1)] == [0, REFUSED, 1]
    answers.admitted()
    admission.finish(1, 4)
    for replica in (0, 0, 1):
        answers.token(replica)
    assert answers == [[0, 1], 1, 1]


def test_backup_replicas_stand_in_for_those_who_left() -> None:
    admission, answers = made(2, 3)
    admission.leave(0)
    answers.admitted()
    admission.admit(1, 0)
    assert answers == []
    admission.admit(2, 0)
    assert answers == [[0, 1]]


def test_when_all_have_left_training_ends() -> None:
    admission, answers = made(2, 2)
    answers.admitted()
    answers.token(0)
    for replica in (0, 1):
        admission.leave(replica)
    assert [type(answer) for answer in answers] == [OutOfRangeError, OutOfRangeError]


def test_the_end_ends_all_and_a_stop_only_who_applies() -> None:
    admission, answers = made(2, 2)
    answers.admitted()
    answers.token(0)
    admission.end(everybody=False)
    assert [type(answer) for answer in answers] == [CancelledError]
    answers.admitted()
    assert [type(answer) for answer in answers] == [CancelledError] * 2
    admission.end(everybody=True)
    assert isinstance(answers[-1], OutOfRangeError)
    with pytest.raises(OutOfRangeError, match="synchronous training by 'a' has ended at step 0"):
        admission.admit(0, 0)
    admission.open(0)
    assert admission.admit(0, 0) == 0


def test_gradients_that_were_taken_and_not_applied_are_gone_after_a_restart() -> None:
    admission, answers = made(1, 1)
    admission.admit(0, 0)
    answers.admitted()
    admission.open(0)
    answers.admitted()
    assert answers == [[0]]
    assert admission.admit(0, 0) == 1
    assert answers == [[0], [1]]


def test_gradients_that_came_before_the_chief_stay() -> None:
    admission, answers = made(2, 2)
    admission.admit(1, 40)
    admission.open(40)
    answers.admitted()
    admission.admit(0, 40)
    assert answers == [[1, 0]]


def test_who_waits_in_vain_is_told_for_whom() -> None:
    admission, answers = made(3, 3)
    admission.admit(0, 0)
    answers.token(0, timeout_secs=0.01)
    for _ in range(2000):
        if answers:
            break
        time.sleep(0.005)
    (error,) = answers
    assert isinstance(error, DeadlineExceededError)
    assert "step 0 has 1 of 3 gradients, from the replicas 0; missing are 1 (never seen)" in str(
        error
    )
    assert admission.counters()[2] == 1


@pytest.fixture
def going_on() -> Iterator[None]:
    """A job that goes on without workers that are lost."""
    leave = outlive_tasks()
    yield
    leave()


def joined(wanted: int, total: int) -> tuple[Admission, Answers]:
    admission, answers = made(wanted, total)
    for replica in range(total):
        # Tasks in another order than replicas, as with ``replica_index``.
        admission.join(replica, total - 1 - replica)
    return admission, answers


def lose(admission: Admission, replica: int, total: int) -> None:
    admission.lose_task(DeviceName("worker", total - 1 - replica))


@pytest.mark.usefixtures("going_on")
def test_a_step_is_applied_when_its_gradients_are_there() -> None:
    admission, answers = joined(2, 2)
    answers.admitted()
    numbers = [admission.admit(replica, 0) for replica in (1, 0)]
    answers.token(1, number=numbers[0])
    assert answers == []
    answers.token(0, number=numbers[1])
    assert answers == [[1, 0]]
    admission.finish(1, 2)
    assert answers == [[1, 0], 1, 1]


@pytest.mark.usefixtures("going_on")
def test_who_is_lost_before_its_gradient_came_is_not_waited_for() -> None:
    admission, answers = joined(3, 3)
    answers.admitted()
    numbers = [admission.admit(replica, 0) for replica in range(3)]
    for replica in (0, 2):
        answers.token(replica, number=numbers[replica])
    assert answers == []
    lose(admission, 1, 3)
    assert answers == [[0, 2]]
    # It is refused from then on, also with the token of a step that was cancelled too late.
    assert admission.admit(1, 0) == REFUSED
    answers.token(1, number=numbers[1])
    admission.finish(1, 3)
    assert answers[1:] == [1, 1, 1]
    assert admission.counters()[4] == 2


@pytest.mark.usefixtures("going_on")
def test_what_a_lost_replica_brought_counts() -> None:
    admission, answers = joined(2, 2)
    answers.admitted()
    answers.token(0, number=admission.admit(0, 0))
    lose(admission, 0, 2)
    # One replica is left, and its gradient is not needed: the step has one.
    assert answers == [[0]]


@pytest.mark.usefixtures("going_on")
def test_a_backup_replica_that_was_refused_takes_the_place_of_a_lost_one() -> None:
    admission, answers = joined(3, 4)
    answers.admitted()
    numbers = [admission.admit(replica, 0) for replica in range(4)]
    assert numbers == [0, 1, 2, REFUSED]
    answers.token(3)
    answers.token(0, number=0)
    lose(admission, 1, 4)
    # It begins the step again, at once.
    assert answers == [0]
    assert admission.admit(3, 0) == 3
    answers.token(3, number=3)
    answers.token(2, number=2)
    assert answers == [0, [0, 2, 3]]
    admission.finish(1, 4)
    assert answers == [0, [0, 2, 3], 1, 1, 1]


@pytest.mark.usefixtures("going_on")
def test_a_backup_replica_that_asks_late_begins_again_too() -> None:
    admission, answers = joined(2, 3)
    answers.admitted()
    assert [admission.admit(replica, 0) for replica in range(3)] == [0, 1, REFUSED]
    lose(admission, 0, 3)
    answers.token(2)
    assert answers == [0]
    # Only once for each loss.
    answers.token(2)
    assert answers == [0]


def test_workers_that_never_came_are_counted_once() -> None:
    admission, _ = made(2, 3)
    admission.lose_task(DeviceName("worker", 1))
    assert admission.counters()[4] == 2
    # Nor others than workers, nor workers that are no replicas.
    admission.lose_task(DeviceName("evaluator", 1))
    admission.lose_task(DeviceName("worker", 3))
    assert admission.counters()[4] == 2


def test_losses_come_through_the_door_of_core() -> None:
    admission, _ = joined(2, 3)
    tell_loss(DeviceName("worker", 0))
    assert admission.counters()[4] == 2


def test_a_pause_waits_for_what_is_applied_and_holds_back_the_next() -> None:
    admission, answers = made(1, 2)
    paused: list[Any] = []
    answers.admitted()
    assert admission.admit(0, 0) == 0
    assert answers == [[0]]
    admission.pause(paused.append, None)
    assert paused == []
    admission.finish(1, 2)
    assert paused == [None]
    # The step is full, and whoever applies gradients waits.
    answers.admitted()
    assert admission.admit(0, 1) == 1
    admission.pause(paused.append, None)
    assert paused == [None, None]
    admission.resume()
    assert answers == [[0]]
    admission.resume()
    assert answers == [[0], [1]]
    # One resume too many does no harm.
    admission.finish(2, 2)
    admission.resume()
    answers.admitted()
    assert admission.admit(0, 2) == 2
    assert answers == [[0], [1], [2]]


def test_a_pause_that_is_given_up_is_none() -> None:
    admission, answers = made(1, 1)
    answers.admitted()
    admission.admit(0, 0)
    cancellation, paused = Cancellation(), []
    admission.pause(paused.append, cancellation)
    cancellation.cancel(CancelledError("late"))
    assert [type(answer) for answer in paused] == [CancelledError]
    admission.finish(1, 1)
    answers.admitted()
    admission.admit(0, 1)
    assert answers == [[0], [1]]


def test_a_chief_that_begins_anew_is_not_held_back_by_its_past() -> None:
    admission, answers = made(1, 1)
    paused: list[Any] = []
    admission.pause(paused.append, None)
    admission.open(3)
    answers.admitted()
    admission.admit(0, 3)
    assert answers == [[0]]


# -- another chief


def test_another_chief_goes_on_where_the_step_was() -> None:
    admission, answers = made(2, 2)
    admission.open(0)
    admission.add_tokens(0, 2)
    admission.pause(lambda result: None, None)
    gone: list[Any] = []
    admission.admitted(gone.append, None)
    assert admission.admit(0, 0) == 0
    admission.take_over(0, 2)
    assert isinstance(gone[0], CancelledError)
    # What was brought counts, nobody holds the step up, and no further tokens are given out.
    assert admission.admit(1, 0) == 1
    answers.admitted()
    assert answers == [[0, 1]]
    answers.token(0)
    answers.token(0)
    assert answers[1:] == [0]
    admission.finish(1, 2)
    assert answers[1:] == [0, 1]


def test_another_chief_begins_where_none_has() -> None:
    admission, answers = made(2, 2)
    answers.token(1)
    assert answers == []
    admission.take_over(5, 2)
    assert answers == [5]
    assert admission.admit(0, 4) == REFUSED


@pytest.mark.parametrize("step", [3, 4])
def test_what_a_lost_chief_was_applying_is_computed_again(step: int) -> None:
    admission, answers = made(2, 2)
    admission.open(3)
    gone: list[Any] = []
    for replica in (0, 1):
        assert admission.admit(replica, 3) == replica
        answers.token(replica, number=replica)
    admission.admitted(gone.append, None)
    assert gone == [[0, 1]]
    assert answers == []
    # It may have counted the step already.
    admission.take_over(step, 0)
    assert answers == [step, step]
    assert [admission.admit(replica, step) for replica in (0, 1)] == [2, 3]
    answers.admitted()
    assert answers == [step, step, [2, 3]]


def test_a_lost_chief_that_came_late_to_apply_holds_nobody_up() -> None:
    admission, answers = made(2, 3)
    for replica in range(3):
        admission.join(replica, replica)
    admission.take_over(1, 0)
    gone: list[Any] = []
    cancellation = Cancellation()
    admission.admitted(gone.append, cancellation)
    for replica in (1, 2):
        admission.admit(replica, 1)
        answers.token(replica, number=replica - 1)
    assert gone == [[0, 1]]
    cancellation.cancel(CancelledError("its rank was lost"))
    admission.lose_task(DeviceName("worker", 0))
    assert answers == [1, 1]
    assert [admission.admit(replica, 1) for replica in (1, 2)] == [2, 3]
    answers.admitted()
    assert answers == [1, 1, [2, 3]]


def test_a_lost_chief_beside_the_workers_is_a_replica_less() -> None:
    admission, answers = made(3, 3)
    admission.lose_task(DeviceName("chief", 0))
    assert admission.counters()[4] == 3
    admission.join(CHIEF, CHIEF)
    admission.lose_task(DeviceName("chief", 0))
    assert admission.counters()[4] == 2
    admission.admit(0, 0)
    admission.admit(1, 0)
    answers.admitted()
    assert answers == [[0, 1]]
