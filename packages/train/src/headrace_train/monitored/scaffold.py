"""``Scaffold``: the pieces of a training program that a session needs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Self

import headrace as hr
from headrace import GraphKeys, Operation, Tensor, Variable
from headrace.errors import ArgumentTypeError, FailedPreconditionError
from headrace_train.resumption.event import add_ready_event
from headrace_train.resumption.run_state import prepare

_log = logging.getLogger("headrace.train")


class Scaffold:
    """The pieces of a training program that a session needs: given, found, or made.

    A piece that is not given is found in the graph's collection of its name, or made and put there
    by ``finalize``.
    """

    def __init__(
        self,
        init_op: Any = None,
        init_feed_dict: Mapping[Any, Any] | None = None,
        init_fn: Callable[[Scaffold, Any], Any] | None = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        local_init_op: Any = None,
        summary_op: Any = None,
        saver: Any = None,
        copy_from_scaffold: Scaffold | None = None,
    ) -> None:
        """Give pieces.

        Args:
            init_op: Initializes the variables of a new model.
            init_feed_dict: What to feed for ``init_op``.
            init_fn: Called with the scaffold and the session after ``init_op``.
            ready_op: [n], string: yields the names of variables without a value.
            ready_for_local_init_op: [n], string: yields what ``local_init_op`` waits for.
            local_init_op: Initializes what belongs to each session, such as tables.
            summary_op: [], string: the summaries of a step.
            saver: Saves and restores the variables.
            copy_from_scaffold: Another scaffold, whose pieces stand where none are given.

        Raises:
            ArgumentTypeError: if ``copy_from_scaffold`` is no scaffold.
        """
        other = copy_from_scaffold
        if other is not None and not isinstance(other, Scaffold):
            raise ArgumentTypeError("copy_from_scaffold is not a Scaffold instance.")

        def chosen(given: Any, name: str) -> Any:
            return getattr(other, name) if given is None and other is not None else given

        self._user_init_fn = chosen(init_fn, "_user_init_fn")
        self._init_op = chosen(init_op, "init_op")
        self._init_feed_dict = chosen(init_feed_dict, "init_feed_dict")
        self._ready_op = chosen(ready_op, "ready_op")
        self._ready_for_local_init_op = chosen(ready_for_local_init_op, "ready_for_local_init_op")
        self._local_init_op = chosen(local_init_op, "local_init_op")
        self._summary_op = chosen(summary_op, "summary_op")
        self._saver = chosen(saver, "saver")

    def finalize(self) -> Self:
        """Find or make what is missing, and finalize the default graph.

        Raises:
            FailedPreconditionError: if a collection has several pieces to choose from.
        """
        graph = hr.get_default_graph()
        # A session that is made anew finds everything, in a graph that is finalized.
        with hr.control_dependencies(None):
            self._find_all()
        prepare(graph)
        add_ready_event(graph)
        graph.finalize()
        return self

    def _find_all(self) -> None:
        found = Scaffold.get_or_default
        if self._init_op is None:
            self._init_op = found(
                "init_op", GraphKeys.INIT_OP, lambda: hr.group(hr.global_variables_initializer())
            )
        if self._ready_op is None:
            self._ready_op = found("ready_op", GraphKeys.READY_OP, lambda: _without_value(None))
        if self._ready_for_local_init_op is None:
            self._ready_for_local_init_op = found(
                "ready_for_local_init_op",
                GraphKeys.READY_FOR_LOCAL_INIT_OP,
                lambda: _without_value(hr.global_variables()),
            )
        if self._local_init_op is None:
            self._local_init_op = found(
                "local_init_op", GraphKeys.LOCAL_INIT_OP, Scaffold.default_local_init_op
            )
        if self._summary_op is None:
            self._summary_op = found("summary_op", GraphKeys.SUMMARY_OP, hr.summary.merge_all)
        if self._saver is None:
            self._saver = found("saver", GraphKeys.SAVERS, _default_saver)
        build = getattr(self._saver, "build", None)
        if build is not None:
            build()

    @property
    def init_fn(self) -> Callable[[Any], Any] | None:
        """What to call with a session after ``init_op``, None for nothing."""
        given = self._user_init_fn
        return None if given is None else lambda session: given(self, session)

    @property
    def init_op(self) -> Any:
        """What initializes the variables of a new model."""
        return self._init_op

    @property
    def ready_op(self) -> Any:
        """What yields the names of variables without a value."""
        return self._ready_op

    @property
    def ready_for_local_init_op(self) -> Any:
        """What yields the names that ``local_init_op`` waits for."""
        return self._ready_for_local_init_op

    @property
    def local_init_op(self) -> Any:
        """What initializes what belongs to each session."""
        return self._local_init_op

    @property
    def summary_op(self) -> Any:
        """The summaries of a step, None if there are none."""
        return self._summary_op

    @property
    def saver(self) -> Any:
        """What saves and restores the variables."""
        return self._saver

    @property
    def init_feed_dict(self) -> Any:
        """What to feed for ``init_op``."""
        return self._init_feed_dict

    @staticmethod
    def get_or_default(
        arg_name: str, collection_key: str, default_constructor: Callable[[], Any]
    ) -> Any:
        """Return what is in a collection of the default graph, made and put there if nothing is.

        Args:
            arg_name: What messages call it.
            collection_key: The collection.
            default_constructor: Makes it, or returns None where there is nothing to make.

        Raises:
            FailedPreconditionError: if the collection has several.
        """
        elements = hr.get_collection(collection_key)
        if len(elements) > 1:
            raise FailedPreconditionError(
                f"More than one item in the collection {collection_key!r}. Please indicate which "
                f"one to use by passing it to hr.train.Scaffold({arg_name}=...)"
            )
        if elements:
            return elements[0]
        made = default_constructor()
        if made is not None:
            hr.add_to_collection(collection_key, made)
        return made

    @staticmethod
    def default_local_init_op() -> Operation:
        """Return an operation that initializes local variables and tables."""
        return hr.group(hr.local_variables_initializer(), hr.tables_initializer())


def _without_value(variables: list[Variable] | None) -> Tensor:
    """Return the names of variables without a value, under the name they have in TensorFlow."""
    names: Tensor = hr.identity(hr.report_uninitialized_variables(variables), name="concat")
    return names


def _default_saver() -> Any:
    """Return a saver of all variables; where several tasks have them, each saves its own."""
    asked = [variable.op.device_name for variable in hr.global_variables()]
    tasks = {(name.job, name.task) for name in asked}
    return hr.train.Saver(sharded=len(tasks) > 1, allow_empty=True)
