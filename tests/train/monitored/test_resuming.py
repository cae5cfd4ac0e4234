"""A monitored program that is killed, told to end, or fails, goes on where it was, to the bit."""

from __future__ import annotations

import json
import os
import random
import re
import signal
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.errors import FailedPreconditionError
from headrace_train.checkpoint import cli
from tests.children import run_program

pytestmark = pytest.mark.needs("backend-cpu", "data")

# One process imports everything, and then forks each run: that takes a fraction of the time.
DRIVER = """
import json, os, random, signal, sys, time
from pathlib import Path
import headrace as hr

def train(folder, stop, printed):
    '''Write each step's number and loss; shuffle, draw random numbers, and count on.'''
    hr.set_random_seed(11)
    data = hr.data.Dataset.range(64).shuffle(16).map(lambda i: hr.cast(i, hr.float32)).repeat()
    iterator = data.batch(4).make_initializable_iterator()
    hr.add_to_collection(hr.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    x = iterator.get_next() / 64.0 + hr.random_normal([4], stddev=0.1)
    w = hr.Variable(hr.random_normal([3, 4]))
    loss = hr.reduce_mean(hr.square(w * x - hr.random_uniform([3, 4])))
    step = hr.train.get_or_create_global_step()
    run = hr.train.AdamOptimizer(0.05).minimize(loss, global_step=step)
    hooks = [
        hr.train.StopAtStepHook(last_step=stop),
        hr.train.EarlyStoppingHook(loss, patience=1000, every_n_steps=1),
    ]
    config = hr.Config(deterministic=True)
    with hr.train.MonitoredTrainingSession(
        checkpoint_dir=folder, save_checkpoint_steps=5, hooks=hooks, config=config
    ) as session:
        while not session.should_stop():
            _, value = session.run([run, loss])
            at = session._tf_sess().run(step)
            os.write(printed, json.dumps([int(at), float(value).hex()]).encode() + b"\\n")

def start(folder, stop):
    '''Fork a run; return its process and the end of a pipe where its losses come out.'''
    receive, send = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(receive)
        code = 1
        try:
            train(folder, stop, send)
            code = 0
        except SystemExit as end:
            code = end.code
        except BaseException as error:
            print("a run failed:", repr(error), file=sys.stderr, flush=True)
        finally:
            os._exit(code)
    os.close(send)
    return process, os.fdopen(receive, "rb")

def finished(process, pipe, losses):
    '''Take what is left of the losses; return how the process ended.'''
    losses.update(json.loads(line) for line in pipe.read().splitlines() if line.endswith(b"]"))
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])

root, stop, rounds = Path(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
whole = {}
assert finished(*start(root / "whole", stop), whole) == 0
assert sorted(whole) == list(range(1, stop + 1))
for number, signals in enumerate(rounds):
    folder, found = root / f"ended-{number}", {}
    while stop not in found:
        process, pipe = start(folder, stop)
        losses, sent = {}, None
        if signals:
            sent, count, later = signals.pop(0)
            while len(losses) < count and (line := pipe.readline()):
                losses.update([json.loads(line)])
            time.sleep(later)
            os.kill(process, sent)
        code = finished(process, pipe, losses)
        assert code in (0, -signal.SIGKILL, 128 + signal.SIGTERM), code
        if code == 128 + signal.SIGTERM:
            # Nothing is lost: the checkpoint is that of the last step.
            assert hr.train.latest_checkpoint(folder).endswith(f"-{max(losses)}"), losses
        for at, value in losses.items():
            assert value == whole[at], f"round {number}, step {at}: {value} != {whole[at]}"
        found.update(losses)
    # A step whose checkpoint was saved may be killed before it tells of itself.
    assert all(at % 5 == 0 for at in set(whole) - set(found)), sorted(found)
print("equal to the bit")
"""


def end_and_go_on(folder: Path, stop: int, rounds: list[Any], timeout_s: float) -> None:
    """Run a program to its end, and others like it that signals end again and again."""
    done = run_program(DRIVER, folder, stop, json.dumps(rounds), timeout_s=timeout_s)
    assert done.stdout.endswith("equal to the bit\n")


@pytest.mark.slow
def test_a_program_goes_on_after_kill_and_after_sigterm(tmp_path: Path) -> None:
    ends = [(signal.SIGKILL, 8, 0), (signal.SIGTERM, 4, 0), (signal.SIGKILL, 3, 0)]
    end_and_go_on(tmp_path, 20, [ends], timeout_s=50)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_program_goes_on_after_fifty_kills(tmp_path: Path) -> None:
    rng = random.Random(3)
    ends = [
        (signal.SIGTERM if i % 5 == 4 else signal.SIGKILL, rng.randint(1, 25), rng.uniform(0, 0.02))
        for i in range(62)
    ]
    rounds = [ends[i : i + 5] for i in range(0, len(ends), 5)]
    end_and_go_on(tmp_path, 120, rounds, timeout_s=1100)


class Failing(hr.train.SessionRunHook):
    """A hook that raises after a step."""

    def __init__(self, at: int) -> None:
        self.at = at

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.at -= 1
        if not self.at:
            raise KeyError("boom")


def counting(folder: Path, hooks: list[Any], **options: Any) -> int:
    """Count on from a folder until a hook stops; return the last step."""
    with hr.Graph().as_default():
        train = hr.assign_add(hr.train.get_or_create_global_step(), 1)
        last = 0
        with hr.train.MonitoredTrainingSession(
            checkpoint_dir=folder, hooks=hooks, **options
        ) as session:
            while not session.should_stop():
                last = int(session.run(train))
        return last


def latest(folder: Path) -> str | None:
    found = hr.train.latest_checkpoint(folder)
    return None if found is None else Path(found).name


def test_an_error_saves_the_last_step(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="boom"):
        counting(tmp_path, [Failing(7)])
    assert latest(tmp_path) == "model.ckpt-7"
    assert counting(tmp_path, [hr.train.StopAtStepHook(num_steps=2)]) == 9
    assert latest(tmp_path) == "model.ckpt-9"
    assert not list(tmp_path.glob(".chief"))


def test_a_loss_that_is_no_number_is_not_saved(tmp_path: Path) -> None:
    with hr.Graph().as_default():
        step = hr.train.get_or_create_global_step()
        train = hr.assign_add(step, 1)
        w = hr.Variable(1.0)
        with hr.control_dependencies([train]):
            loss = w.assign(w / (3.0 - hr.cast(train, hr.float32)) * 0.0)
        hooks = [hr.train.NanTensorHook(loss)]

        def loop() -> None:
            with hr.train.MonitoredTrainingSession(checkpoint_dir=tmp_path, hooks=hooks) as session:
                while not session.should_stop():
                    session.run(loss)

        with pytest.raises(hr.train.NanLossDuringTrainingError, match="NaN loss"):
            loop()
    assert latest(tmp_path) == "model.ckpt-0"


def test_a_failing_end_saves_all_the_same(tmp_path: Path) -> None:
    class FailingEnd(hr.train.SessionRunHook):
        def end(self, session: Any) -> None:
            raise KeyError("at the end")

    with pytest.raises(KeyError, match="at the end"):
        counting(tmp_path, [hr.train.StopAtStepHook(last_step=3)], chief_only_hooks=[FailingEnd()])
    assert latest(tmp_path) == "model.ckpt-3"


def test_two_chiefs_of_one_folder_are_refused(tmp_path: Path) -> None:
    with hr.Graph().as_default():
        hr.train.get_or_create_global_step()
        with hr.train.MonitoredTrainingSession(checkpoint_dir=tmp_path):
            with pytest.raises(FailedPreconditionError, match="another session of this process"):
                counting(tmp_path, [])
            other = (
                "import headrace as hr; hr.train.get_or_create_global_step();"
                f"hr.train.MonitoredTrainingSession(checkpoint_dir={str(tmp_path)!r})"
            )
            done = run_program(other, check=False)
            assert done.returncode == 1
            assert f"process {os.getpid()} on " in done.stderr
            assert "saves checkpoints into" in done.stderr
    assert counting(tmp_path, [hr.train.StopAtStepHook(last_step=2)]) == 2


def test_iterators_that_hooks_start_keep_their_positions(tmp_path: Path) -> None:
    def elements(count: int) -> list[int]:
        with hr.Graph().as_default():
            data = hr.data.Dataset.range(20).shuffle(5, seed=1).repeat()
            iterator = data.make_initializable_iterator()
            element = iterator.get_next()
            train = hr.assign_add(hr.train.get_or_create_global_step(), 1)

            class Start(hr.train.SessionRunHook):
                def after_create_session(self, session: Any, coord: Any) -> None:
                    session.run(iterator.initializer)

            with hr.train.MonitoredTrainingSession(
                checkpoint_dir=tmp_path, hooks=[Start()]
            ) as session:
                return [int(session.run([element, train])[0]) for _ in range(count)]

    first = elements(7)
    # Ends before a step: the position that waits for the iterator is saved again.
    assert elements(0) == []
    rest = elements(13)
    assert sorted(first + rest) == list(range(20))
    assert first != rest[:7]


def test_a_lost_session_goes_on_from_the_checkpoint(tmp_path: Path) -> None:
    class Losing(hr.train.SessionRunHook):
        lost = False

        def before_run(self, run_context: Any) -> None:
            if not self.lost and len(seen) == 5:
                self.lost = True
                raise hr.errors.AbortedError(None, None, "lost")

    seen: list[int] = []
    with hr.Graph().as_default():
        train = hr.assign_add(hr.train.get_or_create_global_step(), 1)
        with hr.train.MonitoredTrainingSession(
            checkpoint_dir=tmp_path, hooks=[Losing()], save_checkpoint_steps=3
        ) as session:
            while len(seen) < 8:
                seen.append(int(session.run(train)))
    assert seen == [1, 2, 3, 4, 5, 4, 5, 6]


@pytest.mark.parametrize("after", [0, 3])
def test_a_lost_task_does_not_come_back(tmp_path: Path, after: int) -> None:
    class Losing(hr.train.SessionRunHook):
        def after_create_session(self, session: Any, coord: Any) -> None:
            made.append(len(seen))
            self.lose()

        def before_run(self, run_context: Any) -> None:
            self.lose()

        def lose(self) -> None:
            if len(seen) == after:
                raise hr.errors.TaskLostError("/job:ps/task:0 was lost")

    made: list[int] = []
    seen: list[int] = []
    with hr.Graph().as_default():
        train = hr.assign_add(hr.train.get_or_create_global_step(), 1)

        def run() -> None:
            with hr.train.MonitoredTrainingSession(
                checkpoint_dir=tmp_path, hooks=[Losing()], save_checkpoint_steps=3
            ) as session:
                while True:
                    seen.append(int(session.run(train)))

        with pytest.raises(hr.errors.TaskLostError, match="/job:ps/task:0 was lost"):
            run()
    assert (made, len(seen)) == ([0], after)


def test_listing_a_checkpoint_cuts_positions_short(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with hr.Graph().as_default():
        iterator = hr.data.Dataset.range(500).shuffle(400).make_one_shot_iterator()
        element = iterator.get_next()
        hr.train.get_or_create_global_step()
        with hr.train.MonitoredTrainingSession(checkpoint_dir=tmp_path) as session:
            session.run(element)
    assert hr.train.list_variables(str(tmp_path)) == [("global_step", [])]
    assert cli.main(["ls", "--about", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "run_state" in shown
    assert re.search(r"\.\.\. \(\d+ characters\)", shown)
    assert max(map(len, shown.splitlines())) < 400
