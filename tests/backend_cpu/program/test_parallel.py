"""Operations that take long and do not wait for each other run at one time."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

import headrace as hr
from headrace.errors import HeadraceError
from headrace.extend import Floating, KernelTable, Spec, hookimpl, op
from headrace.plugins import host as host_module
from headrace.plugins.host import PluginHost
from headrace.runtime.profiling.timing import RUNS, Timing, saved_s

# Long enough to be worth a thread, whatever else the machine does.
PAUSE_S = 0.01
# A region is measured, and then the plan into which it is split.
BEFORE = {"plan": 2 * RUNS, "plain": RUNS}
ONES = np.ones([40, 40], np.float32)
kernels = KernelTable()


@op("TestPause")
def pause(x: Floating, *, fails: bool = False) -> Spec:
    """``x``, after a while in which the processor has nothing to do."""
    return x


class Meeting:
    """Counts how many kernels run at one time; where they should meet, each waits for another."""

    def __init__(self) -> None:
        self.most = 0
        self.meets = False
        self._now = 0
        self._lock = threading.Lock()
        self._barrier = threading.Barrier(2)

    def __enter__(self) -> None:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        if self.meets:
            self._barrier.wait(60)
        else:
            time.sleep(PAUSE_S)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._now -= 1


MEETING = Meeting()


@kernels.plain("TestPause")
def pause_kernel(xp, x, *, fails):
    with MEETING:
        if fails and MEETING.meets:
            raise ValueError("no pause")
        return x + 0


class Entry:
    """An entry point of a package that is not installed."""

    def __init__(self):
        @hookimpl
        def headrace_register_kernels(registry):
            registry.add("cpu", kernels)

        self.name, self.value = "pauses", __name__
        about = {"Name": "pauses", "Version": "1.0"}
        self.dist = SimpleNamespace(name="pauses", version="1.0", metadata=about)
        self.plugin = SimpleNamespace(headrace_register_kernels=headrace_register_kernels)
        self.module = __name__

    def load(self):
        return self.plugin


@pytest.fixture(autouse=True)
def meeting(monkeypatch):
    entries = [*host_module.host()._collection.found(), Entry()]
    monkeypatch.setattr(host_module, "_HOST", PluginHost(entries))
    found = Meeting()
    monkeypatch.setitem(globals(), "MEETING", found)
    return found


@pytest.mark.parametrize("executor", BEFORE)
def test_operations_that_take_long_run_at_one_time(executor, meeting) -> None:
    x = hr.placeholder(hr.float32, ONES.shape)
    total = hr.reduce_sum(pause(x * 2)) + hr.reduce_sum(pause(x + 1))
    with hr.Session(config=hr.Config(executor=executor, inter_op_threads=2)) as session:
        for _ in range(BEFORE[executor]):
            assert session.run(total, {x: ONES}) == 2 * 2 * ONES.size
        assert meeting.most == 1
        # Each waits for the other now: one after the other they would never end.
        meeting.meets = True
        assert session.run(total, {x: ONES}) == 2 * 2 * ONES.size
        assert meeting.most == 2


@pytest.mark.parametrize("executor", BEFORE)
def test_one_thread_runs_one_after_the_other(executor, meeting) -> None:
    x = hr.placeholder(hr.float32, ONES.shape)
    both = [pause(x * 2), pause(x + 1)]
    with hr.Session(config=hr.Config(executor=executor, inter_op_threads=1)) as session:
        for _ in range(BEFORE[executor] + 2):
            session.run(both, {x: ONES})
    assert meeting.most == 1


def test_no_more_run_at_one_time_than_the_session_allows(meeting) -> None:
    x = hr.placeholder(hr.float32, ONES.shape)
    all_of_them = [pause(x + n) for n in range(5)]
    with hr.Session(config=hr.Config(executor="plain", inter_op_threads=2)) as session:
        for _ in range(RUNS + 1):
            values = session.run(all_of_them, {x: ONES})
    assert meeting.most == 2
    assert [value[0, 0] for value in values] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("executor", BEFORE)
def test_what_waits_for_each_other_runs_in_its_order(executor, meeting) -> None:
    x = hr.placeholder(hr.float32, ONES.shape)
    chain = pause(pause(x) * 2)
    with hr.Session(config=hr.Config(executor=executor, inter_op_threads=2)) as session:
        for _ in range(BEFORE[executor] + 2):
            np.testing.assert_array_equal(session.run(chain, {x: ONES}), 2 * ONES)
    assert meeting.most == 1


def test_equal_bits_are_computed_one_after_the_other(meeting) -> None:
    x = hr.placeholder(hr.float32, ONES.shape)
    both = [pause(x * 2), pause(x + 1)]
    with hr.Session(config=hr.Config(deterministic=True, inter_op_threads=2)) as session:
        for _ in range(BEFORE["plan"] + 2):
            session.run(both, {x: ONES})
    assert meeting.most == 1


@pytest.mark.parametrize("executor", BEFORE)
def test_an_error_names_its_operation_and_the_other_ends_first(executor, meeting) -> None:
    x = hr.placeholder(hr.float32, ONES.shape)
    both = [pause(x * 2, fails=True, name="fails"), pause(x + 1)]
    with hr.Session(config=hr.Config(executor=executor, inter_op_threads=2)) as session:
        for _ in range(BEFORE[executor]):
            session.run(both, {x: ONES})
        meeting.meets = True
        with pytest.raises(HeadraceError, match=r"no pause[\s\S]*'fails'|'fails'[\s\S]*no pause"):
            session.run(both, {x: ONES})
        assert meeting._now == 0
        meeting.meets = False
        session.run(both, {x: ONES})


def test_what_is_written_and_read_around_long_operations_keeps_its_order(meeting) -> None:
    v = hr.Variable(ONES)
    before = hr.reduce_sum(pause(v.value())) + hr.reduce_sum(pause(v * 3))
    with hr.control_dependencies([before]):
        added = hr.assign_add(v, ONES)
    with hr.Session(config=hr.Config(inter_op_threads=2)) as session:
        session.run(hr.global_variables_initializer())
        for step in range(BEFORE["plan"] + 3):
            seen, now = session.run([before, added])
            assert seen == 4 * (step + 1) * ONES.size
            np.testing.assert_array_equal(now, (step + 2) * ONES)
    assert meeting.most == 2


def test_what_is_saved_is_the_sum_less_the_longest_way() -> None:
    def timing(seconds: float) -> Timing:
        found = Timing()
        found.seconds = seconds
        return found

    needs = {"a": [], "b": ["a"], "c": [], "d": ["b", "c"]}
    timings = {"a": timing(1.0), "b": timing(2.0), "c": timing(1.5)}
    assert saved_s(list(needs), needs.__getitem__, timings) == pytest.approx(1.5)
    assert saved_s(list(needs), needs.__getitem__, {"a": timing(1.0)}) == 0


def test_a_kernel_that_takes_several_cores_is_left_alone() -> None:
    found = Timing()
    found.seconds, found.processor_s = 1.0, 1.9
    assert not found.long
    found.processor_s = 1.0
    assert found.long
    found.seconds = 0.0001
    assert not found.long
