"""Reject checks: what an op does not take, it refuses with an error that says what and why."""

from __future__ import annotations

import re

from headrace import Graph, constant
from headrace import device as device_scope
from headrace.errors import MAX_LINES
from headrace_testing.build import add_node, make_values, nested, runs_on
from headrace_testing.failure import ConformanceError, SkipCheck, fail
from headrace_testing.sample import Reject
from headrace_testing.sessions import open_session


def check_reject(row: Reject, device: str) -> None:
    """Build the node, or run it: the documented error, in at most a dozen lines."""
    with Graph().as_default():
        tensors = nested(constant, make_values(row.inputs, None))
        try:
            with device_scope(device):
                op = add_node(row, tensors)
        except Exception as error:
            _judge(row, device, error, "build")
            return
        if row.when == "build":
            raise fail(row, device, "build", f"expected {row.error.__name__}, the op was built")
        if not runs_on(op, device):
            raise SkipCheck(f"{device} has no kernel of {row.op} for these dtypes")
        try:
            with open_session() as session:
                session.run(op)
        except Exception as error:
            _judge(row, device, error, "run")
            return
    raise fail(row, device, "run", f"expected {row.error.__name__}, the step succeeded")


def _judge(row: Reject, device: str, error: Exception, when: str) -> None:
    text = str(error)
    problem = ""
    if when != row.when:
        problem = f"expected to be refused when it is {row.when}, was when it is {when}"
    elif not isinstance(error, row.error):
        problem = f"expected {row.error.__name__}"
    elif not re.search(row.match, text):
        problem = f"expected a message with {row.match!r}"
    elif len(text.splitlines()) > MAX_LINES:
        problem = f"expected a message of at most {MAX_LINES} lines"
    if problem:
        raise fail(row, device, when, f"{problem}, got {_described(error)}") from error


def _described(error: Exception) -> str:
    kind = "ConformanceError" if isinstance(error, ConformanceError) else type(error).__name__
    return f"{kind}: {error}"
