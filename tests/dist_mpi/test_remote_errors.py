"""Errors between ranks keep their kind, their text and their cause."""

from __future__ import annotations

import json
import traceback

import pytest

from headrace.errors import (
    ClusterError,
    ExecutionError,
    HeadraceError,
    ResourceExhaustedError,
    UninitializedError,
)
from headrace_mpi.steps import remote_errors
from headrace_mpi.steps.remote_errors import StepAbortedError

WHERE = "/job:ps/task:0 (rank 0)"


class OwnError(UninitializedError):
    """An error class that the other rank need not have."""


def test_an_error_comes_back_as_what_it_was_and_names_its_task() -> None:
    text = "1 variable is not initialized: w\n  in ReadVariable 'read'\n  at train.py:3: w = ..."
    got = remote_errors.unpack(remote_errors.pack(UninitializedError(text)), WHERE)
    assert type(got) is UninitializedError
    assert str(got).splitlines() == [
        "1 variable is not initialized: w",
        f"  on {WHERE}",
        "  in ReadVariable 'read'",
        "  at train.py:3: w = ...",
    ]
    assert got.__cause__ is None


def test_a_class_of_a_plugin_comes_back_as_its_nearest_kin() -> None:
    got = remote_errors.unpack(remote_errors.pack(OwnError("not yet")), WHERE)
    assert type(got) is UninitializedError


def test_a_foreign_error_becomes_a_cluster_error_with_its_traceback() -> None:
    try:
        {}["missing"]
    except KeyError as error:
        data = remote_errors.pack(error)
    got = remote_errors.unpack(data, WHERE)
    assert type(got) is ClusterError
    assert str(got) == f"KeyError: 'missing'\n  on {WHERE}"
    assert '{}["missing"]' in "".join(traceback.format_exception(got))


@pytest.mark.parametrize("text", ["", "Unable to allocate 4.00 GiB"])
def test_a_task_without_memory_is_not_a_task_that_is_gone(text: str) -> None:
    got = remote_errors.unpack(remote_errors.pack(MemoryError(*filter(None, [text]))), WHERE)
    assert type(got) is ResourceExhaustedError
    assert not isinstance(got, ClusterError)
    assert str(got) == f"{text or 'the memory has no room'}\n  on {WHERE}"


def test_the_cause_of_a_kernel_error_is_shown() -> None:
    try:
        try:
            _ = 1 // 0
        except ZeroDivisionError as error:
            raise ExecutionError("Div failed") from error
    except ExecutionError as error:
        data = remote_errors.pack(error)
    got = remote_errors.unpack(data, WHERE)
    assert type(got) is ExecutionError
    assert "_ = 1 // 0" in "".join(traceback.format_exception(got))


def test_what_headrace_itself_refused_needs_no_traceback() -> None:
    try:
        raise UninitializedError("located") from UninitializedError("plain")
    except UninitializedError as error:
        data = remote_errors.pack(error)
    assert remote_errors.unpack(data, WHERE).__cause__ is None


def test_a_consequence_stays_one() -> None:
    got = remote_errors.unpack(
        remote_errors.pack(StepAbortedError("the step ended elsewhere")), WHERE
    )
    assert type(got) is StepAbortedError


def test_long_texts_are_cut() -> None:
    error = ExecutionError("\n".join(f"line {i} " + "x" * 5000 for i in range(50)))
    data = remote_errors.pack(error)
    assert len(data) < 32 * 1024
    assert len(str(remote_errors.unpack(data, WHERE)).splitlines()) <= 12


@pytest.mark.parametrize("kind", ["listing", "annotations", "SystemExit", "no such"])
def test_only_headrace_errors_are_made(kind: str) -> None:
    fields = {"kind": kind, "text": "odd", "trace": "", "consequence": False}
    got = remote_errors.unpack(json.dumps(fields).encode(), WHERE)
    assert type(got) is ClusterError
    assert isinstance(got, HeadraceError)
