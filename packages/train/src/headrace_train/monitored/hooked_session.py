"""A session that calls hooks around each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import headrace as hr
from headrace import Operation, Session, Tensor, Variable
from headrace.errors import FailedPreconditionError
from headrace.extend.graphs import flatten, pack
from headrace_train.hooks.session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from headrace_train.steps import GLOBAL_STEP_READ

_SINGLE = frozenset((Tensor, Operation, Variable, str))


@final
class HookedSession:
    """Runs steps with what hooks ask for, and calls them before and after.

    Attributes:
        session: The session, without hooks.
        stopped: Whether a hook requested a stop.
        hooks: The hooks, in order; another list counts from the next step on.
    """

    def __init__(self, session: Any, hooks: Sequence[SessionRunHook]) -> None:
        """Join a session and hooks."""
        self.session = session
        self.stopped = False
        self.hooks = hooks
        # Steps by what they fetch, prepared, so that a loop of one step pays little for its hooks.
        self._prepared: dict[Any, Any] = {}
        self._prepares = type(session) is Session
        self._read = self._ordered_read()
        self._options = hr.RunOptions()
        self._run_metadata = hr.RunMetadata()

    def run(self, fetches: Any, feed_dict: Any, options: Any, run_metadata: Any) -> Any:
        """Run a step; arguments as for ``Session.run``.

        Raises:
            FailedPreconditionError: if a hook requested a stop before, or a tensor is fed twice.
        """
        if self.stopped:
            raise FailedPreconditionError("Run called even after should_stop requested.")
        context = SessionRunContext(SessionRunArgs(fetches, feed_dict), self.session)
        wanted = [fetches]
        places = []
        feeds: dict[Any, Any] = {}
        asked = options
        hooks = self.hooks
        for hook in hooks:
            request = hook.before_run(context)
            place = 0
            if request is not None:
                if request.fetches is not None:
                    place = len(wanted)
                    wanted.append(request.fetches)
                if request.feed_dict:
                    _refuse_both(feeds, request.feed_dict, "two hooks")
                    feeds.update(request.feed_dict)
                if request.options is not None:
                    asked = _merged(asked, request.options)
            places.append(place)
        if feeds:
            if feed_dict:
                _refuse_both(feed_dict, feeds, "a SessionRunHook and user")
                feeds.update(feed_dict)
        else:
            feeds = feed_dict
        if asked is not None and run_metadata is None:
            run_metadata = hr.RunMetadata()
        results = self._run(wanted, feeds, asked, run_metadata)
        seen = self._options if asked is None else asked
        learnt = self._run_metadata if run_metadata is None else run_metadata
        for hook, place in zip(hooks, places, strict=True):
            value = results[place] if place else None
            hook.after_run(context, SessionRunValues(value, seen, learnt))
        if context.stop_requested:
            self.stopped = True
        return results[0]

    def _ordered_read(self) -> Any:
        """Return the read of the global step that must not share a step with its change.

        A deterministic session refuses a step that waits for input, and reads and changes the
        global step in no order.
        """
        config = getattr(self.session, "config", None)
        deterministic = isinstance(config, hr.Config) and config.options.deterministic
        listed = self.session.graph.get_collection(GLOBAL_STEP_READ) if deterministic else []
        return listed[0] if listed else None

    def _run(self, wanted: list[Any], feeds: Any, options: Any, run_metadata: Any) -> Any:
        """Run a step, one that was prepared if possible."""
        if self._read is not None:
            return self._run_after_read(wanted, feeds, options, run_metadata)
        if feeds or options is not None or run_metadata is not None or not self._prepares:
            return self.session.run(
                wanted, feed_dict=feeds, options=options, run_metadata=run_metadata
            )
        key = []
        for item in wanted:
            kind = type(item)
            if kind in _SINGLE:
                key.append(item)
            elif (kind is list or kind is tuple) and all(type(i) in _SINGLE for i in item):
                key.append((kind, *item))
            else:
                return self.session.run(wanted)
        signature = tuple(key)
        step = self._prepared.get(signature)
        if step is None:
            step = self._prepared[signature] = self.session.make_callable(list(wanted))
        return step()

    def _run_after_read(
        self, wanted: list[Any], feeds: Any, options: Any, run_metadata: Any
    ) -> Any:
        """Run a step, and a read of the global step before it where hooks ask for that."""
        leaves = flatten(wanted, composites=False)
        others = [leaf for leaf in leaves if leaf is not self._read]
        before = self.session.run(self._read) if len(others) < len(leaves) else None
        values = iter(
            self.session.run(others, feed_dict=feeds, options=options, run_metadata=run_metadata)
        )
        found = [before if leaf is self._read else next(values) for leaf in leaves]
        return pack(wanted, found, composites=False)


def _refuse_both(first: Mapping[Any, Any], second: Mapping[Any, Any], who: str) -> None:
    both = [key for key in first if key in second]
    if both:
        raise FailedPreconditionError(f"Same tensor is fed by {who}. Conflict(s): {both}")


def _merged(options: Any, asked: Any) -> Any:
    """Return options that grant what two ask for: of numbers the larger, of flags either."""
    merged = hr.RunOptions()
    for name in hr.RunOptions.FIELDS:
        given = 0 if options is None else getattr(options, name)
        value = max(given, getattr(asked, name))
        setattr(merged, name, bool(value) if isinstance(getattr(merged, name), bool) else value)
    return merged
