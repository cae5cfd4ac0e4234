"""Hooks that are Headrace's own, and what they write."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.errors import AttributeValueError, DataLossError, FailedPreconditionError

pytestmark = pytest.mark.needs("backend-cpu")


def test_profiles_are_timelines(tmp_path: Path) -> None:
    with hr.Graph().as_default():
        train = hr.assign_add(hr.train.get_or_create_global_step(), 1)
        hook = hr.train.ProfilerHook(save_steps=3, output_dir=tmp_path)
        with hr.train.MonitoredSession(hooks=[hook]) as session:
            for _ in range(7):
                session.run(train)
        hr.summary.FileWriterCache.clear()
    files = sorted(tmp_path.glob("timeline-*.json"))
    assert [file.name for file in files] == ["timeline-3.json", "timeline-6.json"]
    events = json.loads(files[0].read_text())["traceEvents"]
    assert events[0]["ph"] == "M"
    assert train.op.name in {event["args"]["name"] for event in events if event["ph"] == "X"}
    (log,) = tmp_path.glob("events.*")
    tagged = [e.tagged_run_metadata.tag for e in hr.train.summary_iterator(log)]
    assert [tag for tag in tagged if tag] == ["step_3", "step_6"]


def test_progress_shows_steps_and_values() -> None:
    shown = io.StringIO()
    with hr.Graph().as_default():
        step = hr.train.get_or_create_global_step()
        train = hr.assign_add(step, 1)
        hook = hr.train.ProgressHook(
            20, {"twice": step * 0 + 8}, "count", stream=shown, interval_s=0.0
        )
        with hr.train.MonitoredSession(hooks=[hook]) as session:
            session._tf_sess().run(hr_assign(step, 10))
            for _ in range(5):
                session.run(train)
    lines = shown.getvalue().splitlines()
    assert lines[-1].startswith("count 15/20 (75%)")
    assert "twice 8" in lines[0]


def hr_assign(step: hr.Variable, value: int) -> Any:
    step.graph._unsafe_unfinalize()
    return step.assign(value)


def values_until_stop(
    values: list[float], patience: int, folder: Path | None = None, **options: Any
) -> hr.train.EarlyStoppingHook:
    """Let a hook measure these values, one after each step."""
    left = iter(values)
    with hr.Graph().as_default():
        train = hr.assign_add(hr.train.get_or_create_global_step(), 1)
        hook = hr.train.EarlyStoppingHook(lambda session: next(left), patience, 1, **options)
        with hr.train.MonitoredTrainingSession(checkpoint_dir=folder, hooks=[hook]) as session:
            for _ in values:
                if session.should_stop():
                    break
                session.run(train)
    return hook


NAN = float("nan")


@pytest.mark.parametrize(
    ("values", "patience", "options", "expected"),
    [
        ([3, 2, 1, 1, 1, 9, 9], 2, {}, (1, 3, 2)),
        ([3, 2, 1, 1, 0.5, 9, 9, 9, 9], 3, {}, (0.5, 5, 3)),
        ([1, 2, 3, 2, 2, 9], 2, {"mode": "max"}, (3, 3, 2)),
        ([5, 4.5, 4.2, 3.9], 2, {"min_delta": 1.0}, (5, 1, 2)),
        ([NAN, NAN, NAN], 2, {}, (None, None, 2)),
        ([3, 2, 1], 5, {}, (1, 3, 0)),
    ],
)
def test_early_stopping_waits(
    values: list[float], patience: int, options: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    hook = values_until_stop(values, patience, **options)
    assert (hook.best, hook.best_step, hook.waited) == expected


def test_early_stopping_counts_on(tmp_path: Path) -> None:
    first = values_until_stop([3, 1, 2], 3, tmp_path)
    assert (first.best, first.waited) == (1, 1)
    second = values_until_stop([2, 2, 0], 3, tmp_path)
    assert (second.best, second.best_step, second.waited) == (1, 2, 3)
    # It stopped before: no step is made.
    third = values_until_stop([0], 3, tmp_path)
    assert third.waited == 3


def test_early_stopping_takes_tensors() -> None:
    with hr.Graph().as_default():
        step = hr.train.get_or_create_global_step()
        train = hr.assign_add(step, 1)
        hook = hr.train.EarlyStoppingHook(hr.abs(step - 6), 2, every_n_steps=3, mode="min")
        with hr.train.MonitoredSession(hooks=[hook]) as session:
            last = 0
            while not session.should_stop():
                last = int(session.run(train))
    assert (last, hook.best_step) == (12, 6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"patience": 0}, "patience must be at least 1"),
        ({"patience": 1, "every_n_steps": 0}, "every_n_steps must be at least 1"),
        ({"patience": 1, "mode": "least"}, "mode must be"),
        ({"patience": 1, "min_delta": -1}, "min_delta must be"),
    ],
)
def test_early_stopping_refuses(options: dict[str, Any], message: str) -> None:
    with pytest.raises(AttributeValueError, match=message):
        hr.train.EarlyStoppingHook(None, **options)


def test_random_streams_that_are_none_are_refused() -> None:
    from headrace_train.resumption.random_streams import restore_random_streams

    with hr.Graph().as_default():
        value = hr.placeholder(hr.string, [])
        restore = restore_random_streams(value)
        with hr.Session() as session:
            for text in (b"", b"[]", b'{"a": 3}', b'{"a": [1, 2, "x"]}', b"\xff"):
                with pytest.raises(DataLossError, match="no saved random streams"):
                    session.run(restore, {value: text})


def test_a_hook_without_a_global_step_says_what_to_do() -> None:
    with (
        hr.Graph().as_default(),
        pytest.raises(FailedPreconditionError, match="get_or_create_global_step"),
    ):
        hr.train.MonitoredSession(hooks=[hr.train.StopAtStepHook(1)])
