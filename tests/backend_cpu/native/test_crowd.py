"""Cores that other processes want: when it is seen, and that the pool's threads then sleep soon."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from headrace_cpu.native import crowd as crowd_module
from headrace_cpu.native.crowd import Cores, Crowd, idle, waited, watch
from headrace_cpu.native.threads import open_mp
from tests.children import run_program

pytestmark = pytest.mark.needs("backend-cpu")

needs_pool = pytest.mark.skipif(
    open_mp() is None or len(os.sched_getaffinity(0)) < 2, reason="wants GNU OpenMP and two cores"
)


THREADS = CORES = 2


class Team:
    """Says what was asked of it."""

    def __init__(self) -> None:
        self.there = False
        self.started = 0

    def start(self) -> None:
        assert not self.there
        self.there, self.started = True, self.started + 1

    def end(self) -> None:
        assert self.there
        self.there = False


class Apart:
    """Says whose threads were kept apart; it may help."""

    def __init__(self, *, able: bool = False) -> None:
        self.able = able
        self.parted: list[list[int]] = []
        self.joined = 0

    def part(self, threads: int, late: Iterable[int] = ()) -> bool:
        assert threads == THREADS
        if late:
            self.parted.append(sorted(late))
        return self.able and bool(late)

    def join(self) -> None:
        self.joined += 1


class Machine:
    """A clock, and how long threads have waited for cores as it went on."""

    def __init__(self, *, able: bool = False) -> None:
        self.now, self.total, self.looks = 100.0, 7.0, 0
        self.ran, self.idle = 3.0, 50.0
        # Of the time of all cores, what the process has, and what nobody wants.
        self.own, self.spare = 0.5, 0.0
        self.team, self.apart = Team(), Apart(able=able)
        self.crowd = Crowd(
            self.team, self.apart, {0, 1}, self.waited, lambda _: self.idle, lambda: self.now
        )

    def waited(self) -> dict[int, tuple[float, float]]:
        self.looks += 1
        return {1: (4.0, 3.0), 2: (self.ran, self.total)}

    def spend(self, seconds: float, share: float, step: float = 0.005) -> None:
        """Run steps for some seconds, in a share of which threads wait for a core."""
        end = self.now + seconds
        while self.now < end:
            self.now += step
            self.total += step * share
            self.ran += step * self.own * CORES
            self.idle += step * self.spare * CORES
            self.crowd.look(THREADS)


def test_free_cores_are_left_alone():
    machine = Machine()
    machine.spend(5, 0.02)
    assert (machine.crowd.seen, machine.team.started) == (False, 0)


def test_a_crowd_is_seen_within_two_looks_and_its_end_a_while_later():
    machine = Machine()
    machine.spend(1, 0)
    machine.spend(0.05, 0.9)
    assert machine.crowd.seen
    assert machine.team.there
    machine.spend(3, 0.7)
    assert machine.team.started == 1
    machine.spend(0.15, 0)
    assert machine.team.there
    machine.spend(0.15, 0)
    assert not machine.crowd.seen
    assert not machine.team.there


def test_threads_that_wait_are_first_kept_apart():
    machine = Machine(able=True)
    machine.spend(1, 0)
    machine.spend(0.02, 0.4)
    machine.spend(5, 0)
    assert len(machine.apart.parted) in (1, 2)
    assert machine.apart.parted[0] == [2]
    assert (machine.team.started, machine.apart.joined) == (0, 0)


def test_where_that_does_not_help_they_run_anywhere_again_and_sleep_soon():
    machine = Machine(able=True)
    machine.spend(1, 0)
    machine.spend(0.1, 0.9)
    assert machine.apart.parted == [[2]] * 3
    assert (machine.team.started, machine.apart.joined) == (1, 1)
    machine.spend(2, 0.9)
    assert (len(machine.apart.parted), machine.team.started) == (3, 1)


@pytest.mark.parametrize(("own", "spare"), [(0.9, 0.0), (0.5, 0.4), (0.1, 0.9)])
def test_where_others_have_no_core_they_are_no_crowd(own: float, spare: float):
    machine = Machine()
    machine.own, machine.spare = own, spare
    machine.spend(2, 0.9)
    assert machine.team.started == 0
    machine.own, machine.spare = 0.5, 0.1
    machine.spend(0.1, 0.9)
    assert machine.team.started == 1


def test_what_is_put_on_one_core_again_later_is_kept_apart_again():
    machine = Machine(able=True)
    for _ in range(6):
        machine.spend(1, 0)
        machine.spend(0.02, 0.4)
    machine.spend(1, 0)
    assert len(machine.apart.parted) >= 6
    assert machine.team.started == 0


def changes(machine: Machine, seconds: float) -> int:
    """Return how often the form changes where a crowd is seen only in the long form."""
    before, end = machine.team.started, machine.now + seconds
    while machine.now < end:
        machine.spend(0.005, 0 if machine.crowd.seen else 0.5)
    return machine.team.started - before


def test_a_crowd_that_is_there_again_at_once_is_taken_to_stay_longer_each_time():
    machine = Machine()
    assert changes(machine, 1) >= 2
    assert 2 <= changes(machine, 10) <= 6
    assert changes(machine, 60) <= 14


def test_after_a_long_time_without_others_a_crowd_is_left_soon_again():
    machine = Machine()
    changes(machine, 60)
    machine.spend(20, 0)
    assert not machine.crowd.seen
    assert changes(machine, 1) >= 2


@pytest.mark.parametrize("share", [0.06, 0.1, 0.14])
def test_between_both_shares_nothing_changes(share: float):
    machine = Machine()
    machine.spend(2, share)
    assert machine.team.started == 0
    machine.spend(0.1, 1)
    machine.spend(2, share)
    assert machine.team.there
    assert machine.team.started == 1


def test_what_comes_and_goes_costs_no_changes():
    machine = Machine()
    for _ in range(20):
        machine.spend(0.1, 1)
        machine.spend(0.1, 0)
    assert machine.team.started == 1


def test_what_happened_in_a_pause_says_nothing():
    machine = Machine()
    machine.spend(0.1, 0)
    machine.now, machine.total = machine.now + 3, machine.total + 3
    machine.spend(0.1, 0)
    assert machine.team.started == 0


def test_threads_that_ended_took_their_numbers_with_them():
    machine = Machine()
    machine.spend(0.1, 0)
    machine.total -= 5
    machine.spend(0.1, 0)
    assert machine.team.started == 0


def test_looks_are_rare():
    machine = Machine()
    machine.spend(1, 0, step=0.0001)
    assert 40 < machine.looks <= 52


def test_looks_are_rarer_where_each_takes_long():
    machine = Machine()

    def slow() -> dict[int, tuple[float, float]]:
        machine.looks += 1
        machine.now += 0.001
        return {}

    machine.crowd = Crowd(
        machine.team, machine.apart, {0, 1}, slow, lambda _: 0.0, lambda: machine.now
    )
    machine.spend(10, 0, step=0.0001)
    assert 30 < machine.looks < 42


def test_a_system_that_does_not_tell_is_asked_once():
    asked = []
    crowd = Crowd(Team(), Apart(), {0, 1}, lambda: asked.append(0))
    for _ in range(3):
        crowd.look(THREADS)
        time.sleep(0.03)
    assert len(asked) == 1


def test_nothing_is_looked_at_after_a_fork():
    machine = Machine()
    machine.crowd.forget()
    machine.spend(1, 1)
    assert machine.looks == 0


def test_threads_look_one_at_a_time():
    inside, most = [], []

    def slow() -> dict[int, tuple[float, float]]:
        inside.append(0)
        most.append(len(inside))
        time.sleep(0.01)
        inside.pop()
        return {}

    crowd = Crowd(Team(), Apart(), {0, 1}, slow)
    threads = [threading.Thread(target=crowd.look, args=(THREADS,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) == 1


def told(folder: Path, **threads: str) -> None:
    for name, text in threads.items():
        (folder / name).mkdir()
        (folder / name / "schedstat").write_text(text)


def test_waits_of_all_threads_are_read(tmp_path: Path):
    told(tmp_path, **{"11": "5 1500000000 3\n", "12": "1 250000000 3\n"})
    assert waited(tmp_path) == {11: (5e-9, 1.5), 12: (1e-9, 0.25)}


@pytest.mark.parametrize("text", ["", "12\n", "1 many 2\n"])
def test_other_forms_tell_nothing(tmp_path: Path, text: str):
    told(tmp_path, **{"7": text})
    assert waited(tmp_path) is None


def test_systems_without_these_files_tell_nothing(tmp_path: Path):
    (tmp_path / "7").mkdir()
    assert waited(tmp_path) is None
    assert waited(tmp_path / "none") is None


def test_idle_time_of_some_cores_is_added(tmp_path: Path):
    file = tmp_path / "stat"
    file.write_text("cpu  9 9 9 9 9\ncpu0 1 2 3 150 5\ncpu1 1 2 3 250 5\ncpu10 1 2 3 7 5\nintr 5\n")
    tick = os.sysconf("SC_CLK_TCK")
    assert idle({0, 1}, file) == 400 / tick
    assert idle({10}, file) == 7 / tick
    file.write_text("cpu0 1 2\n")
    assert idle({0}, file) == idle({0}, tmp_path / "none") == 0


@pytest.mark.skipif(waited() is None, reason="this system does not say how long threads wait")
def test_threads_of_this_process_are_read():
    found = waited()
    assert found is not None
    assert min(found[threading.get_native_id()]) >= 0


@pytest.mark.parametrize(("cores", "there"), [(1, False), (2, True), (16, True), (17, False)])
def test_machines_of_some_cores_are_watched(monkeypatch, cores: int, there: bool):
    monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(cores)))
    assert (watch(print) is not None) == there


_APART = """
import os, threading
from headrace_cpu.native.crowd import Cores
from headrace_cpu.native.threads import open_mp

allowed, here = os.sched_getaffinity(0), threading.get_native_id()
held = threading.Event()
python = threading.Thread(target=held.wait)
python.start()
before = set(os.listdir("/proc/self/task"))
cores = Cores(open_mp().parallel)

def kept():
    native = set(os.listdir("/proc/self/task")) - before
    return {len(allowed) - len(os.sched_getaffinity(int(t))) for t in native}

# The pool starts here, and its threads leave this thread's core.
print(cores.part(1), kept(), cores.part(2), kept())
os.sched_setaffinity(here, {max(allowed)})
cores.part(2)
# Now it is this one, and no other.
print(kept(), cores.part(2))
os.sched_setaffinity(here, {min(allowed)})
print(cores.part(2), kept())
# Threads of Python stay, and so do those that are not there.
print(cores.part(2, [python.native_id, 2**30]), os.sched_getaffinity(python.native_id) == allowed)
# Nor is one moved that has the number of a thread that was kept off a core.
cores._kept.add(python.native_id)
os.sched_setaffinity(here, {max(allowed)})
cores.part(2)
print(kept(), os.sched_getaffinity(python.native_id) == allowed)
cores.join()
print(kept())
held.set()
"""


@needs_pool
def test_threads_of_the_pool_are_kept_off_a_core_and_python_threads_are_not():
    done = run_program(_APART, env={"OMP_NUM_THREADS": None})
    assert done.stdout.splitlines() == [
        "False set() True {1}",
        "{1} False",
        "True {1}",
        "False True",
        "{1} True",
        "{0}",
    ], done.stderr


def test_on_one_core_nobody_is_kept_apart(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0})
    monkeypatch.setattr("os.sched_setaffinity", lambda *_: pytest.fail("was moved"))
    assert not Cores(lambda *_: pytest.fail("was started")).part(2, [1, 2])


_SLEEPING = """
import os, resource, time
os.environ["GOMP_SPINCOUNT"] = "3000000000"
from headrace_cpu.native import crowd as crowd_module
from headrace_cpu.native.crowd import Team
from headrace_cpu.native.threads import open_mp
cores = len(os.sched_getaffinity(0))
pool = open_mp()
team = Team(pool.parallel, cores)

def spent():
    # After work for all threads, all but one wait for more.
    pool.parallel(pool.symbols["omp_get_num_threads"], None, cores, 0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    time.sleep(0.3)
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime - before

print(spent())
team.start()
# A busy machine may add a few milliseconds to one of them.
print(min(spent() for _ in range(5)))
team.end()
# The thread that has the team ends when the scheduler lets it.
print(next((x for x in (spent() for _ in range(50)) if x > 0.002), 0))
"""


def test_where_no_thread_can_be_started_steps_go_on(monkeypatch):
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    asked: list[object] = []
    team = crowd_module.Team(asked.append, 2)
    monkeypatch.setattr("_thread.start_new_thread", refuse)
    team.start()
    team.end()
    assert asked == []


def test_a_thread_that_does_not_come_to_run_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(crowd_module, "_START_S", 0.05)
    monkeypatch.setattr("_thread.start_new_thread", lambda *_: 0)
    team = crowd_module.Team(print, 2)
    begun = time.monotonic()
    team.start()
    team.end()
    assert time.monotonic() - begun < 10


@needs_pool
def test_a_second_team_lets_idle_threads_sleep_soon():
    done = run_program(_SLEEPING, env={"OMP_NUM_THREADS": None})
    looking, sleeping, again = map(float, done.stdout.split())
    # On a busy machine those that look get little of a core; those that sleep spend microseconds.
    assert looking > 0.002, done.stderr
    assert sleeping < 0.002
    assert again > 0.002


_CHOICE = """
from headrace_cpu.native.threads import open_mp
print(open_mp().crowd is not None)
"""


@needs_pool
@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, "True"), ({"OMP_WAIT_POLICY": "active"}, "False"), ({"GOMP_SPINCOUNT": "9"}, "False")],
)
def test_a_users_choice_stays(given: dict[str, str], expected: str):
    own = ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
    done = run_program(_CHOICE, env={**dict.fromkeys(own), **given})
    assert done.stdout.strip() == expected, done.stderr
