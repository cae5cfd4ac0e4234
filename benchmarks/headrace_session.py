"""Opens the Headrace sessions of all workloads alike, one way for each variant."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import headrace as hr
from benchmarks.participant import UnavailableError

# The variants that are ways to call the same session, and those that are sessions of another
# kind; every other variant of a workload is one of its programs.
RUN = "Session.run"
CALLABLE = "make_callable"
PLAIN = "plain executor"
WITHOUT_ONEDNN = "without oneDNN"

_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    PLAIN: {"executor": "plain"},
    WITHOUT_ONEDNN: {"onednn": False},
}


def open_session(threads: int, variant: str = RUN) -> hr.Session:
    """Return a session on the default graph, of the kind that a variant stands for.

    Raises:
        UnavailableError: if this Headrace has no such kind of session.
    """
    settings = dict(_SETTINGS.get(variant, {}))
    # What is measured is the program that a training soon runs, not that of its first steps. A
    # revision to compare with may have been written before there was a choice.
    wait = os.environ.get("HEADRACE_COMPILE_WAIT", "1") != "0"
    if wait and "compile_wait" in inspect.signature(hr.Config).parameters:
        settings["compile_wait"] = True
    try:
        config = hr.Config(threads=threads, **settings)
    except (TypeError, hr.errors.ConfigError) as error:
        raise UnavailableError(f"this Headrace has no Config({', '.join(settings)}=)") from error
    return hr.Session(config=config)


def stepper(
    session: hr.Session, variant: str, fetch: Any, feeds: Sequence[hr.Tensor]
) -> Callable[..., Any]:
    """Return a function of the feeds' values that runs one step the way a variant says."""
    if variant == CALLABLE:
        return session.make_callable(fetch, feeds)

    def step(*values: Any) -> Any:
        return session.run(fetch, feed_dict=dict(zip(feeds, values, strict=True)))

    return step
