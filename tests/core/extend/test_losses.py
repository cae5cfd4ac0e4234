"""Telling of tasks that are lost, through the public door."""

from __future__ import annotations

from headrace.extend.devices import DeviceName
from headrace.extend.runtime import outlive_tasks, outlives_tasks, tell_loss, watch_losses


class Listener:
    def __init__(self) -> None:
        self.told: list[str] = []

    def lose(self, task: DeviceName) -> None:
        self.told.append(str(task))


def test_losses_are_told_to_those_who_live() -> None:
    first, second = Listener(), Listener()
    for listener in (first, second):
        watch_losses(listener.lose)
    tell_loss(DeviceName("worker", 1))
    told = second.told
    del second, listener
    tell_loss(DeviceName("worker", 2))
    assert first.told == ["/job:worker/task:1", "/job:worker/task:2"]
    assert told == ["/job:worker/task:1"]


def test_who_listens_late_is_told_of_earlier_losses() -> None:
    leave = outlive_tasks()
    tell_loss(DeviceName("worker", 1))
    late = Listener()
    watch_losses(late.lose)
    leave()
    after = Listener()
    watch_losses(after.lose)
    assert (late.told, after.told) == (["/job:worker/task:1"], [])


def test_a_process_outlives_tasks_while_it_is_in_such_a_cluster() -> None:
    assert not outlives_tasks()
    leave = outlive_tasks()
    other = outlive_tasks()
    leave()
    leave()
    assert outlives_tasks()
    other()
    assert not outlives_tasks()
