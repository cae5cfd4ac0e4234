"""The session: runs steps of a graph, each prepared once and then many times."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any, NoReturn, final

import numpy as np

from headrace.device_name import DeviceName
from headrace.errors import (
    AttributeValueError,
    ConfigError,
    FeedError,
    FetchError,
    GraphError,
    ResourceExhaustedError,
    SessionClosedError,
    listing,
)
from headrace.graph.default_session import use_session
from headrace.graph.graph import Graph
from headrace.graph.operation import Operation
from headrace.graph.scopes import get_default_graph, use_graph
from headrace.graph.tensor import Tensor
from headrace.plugins.host import host
from headrace.records import dataclass
from headrace.runtime.device import HostArray
from headrace.runtime.engine import LocalRuntime
from headrace.runtime.profile import Profile
from headrace.runtime.rendezvous import DEAD
from headrace.runtime.runtime import RegisteredStep, Runtime
from headrace.runtime.unhindered import unhindered
from headrace.session.config import Config
from headrace.session.explanation import Explanation
from headrace.session.feeds import Binder, binder, feed_parts, feed_tensors
from headrace.session.fetches import Fetches, fetch_key, flatten
from headrace.session.growth import Growth
from headrace.session.prepare import missing_feeds, place_and_partition, place_step, step_graph


@dataclass(frozen=True, slots=True)
class PreparedStep:
    """A step of one signature, ready to run.

    Attributes:
        step: The step as its runtime holds it.
        fetches: The fetches, flattened.
        run: Runs one step with values for all feeds, in order.
    """

    step: RegisteredStep
    fetches: Fetches
    run: Callable[[Sequence[Any]], Any]


def _runner(
    run_step: Callable[[Sequence[Any]], list[Any]],
    binders: Sequence[Binder],
    fetches: Fetches,
    composite: tuple[Any, ...] | None,
) -> Callable[[Sequence[Any]], Any]:
    """Return the function that runs a step with values for its feeds.

    Args:
        run_step: Runs the step with its feeds as arrays.
        binders: For each feed the function that checks and converts its value.
        fetches: The fetches, flattened.
        composite: What is fed, where some of it is several tensors, such as a sparse one.
    """
    rebuild, tensors = fetches.rebuild, fetches.tensors

    # Steps that fetch nothing are the training steps that run most often.
    def run_targets(values: Sequence[Any]) -> Any:
        run_step([bind(value) for bind, value in zip(binders, values, strict=True)])
        return rebuild(())

    def run(values: Sequence[Any]) -> Any:
        feeds = [bind(value) for bind, value in zip(binders, values, strict=True)]
        fetched = [
            _owned(value, feeds, tensor)
            for value, tensor in zip(run_step(feeds), tensors, strict=True)
        ]
        if len(fetched) > 1:
            _separate(fetched)
        return rebuild(fetched)

    def run_composite(values: Sequence[Any]) -> Any:
        assert composite is not None
        pairs = zip(composite, values, strict=True)
        return run([part for key, value in pairs for part in feed_parts(key, value)])

    if composite is not None:
        return run_composite
    return run if tensors else run_targets


@final
class Session:
    """Runs steps of a graph.

    A session without a target runs everything in this process and keeps its own variables. It may
    be used by many threads at once; steps then run concurrently.

    Attributes:
        graph: The graph whose parts it runs.
        config: How it runs them.
    """

    def __init__(
        self, target: str = "", graph: Graph | None = None, config: Config | None = None
    ) -> None:
        """Open a session.

        Args:
            target: Empty for this process, or the target of a cluster.
            graph: The graph; the default graph if None.
            config: Settings; the defaults if None.

        Raises:
            AttributeValueError: if target or graph is something else.
            ConfigError: if config is no ``hr.Config``.
            PluginError: if no plugin knows the target.
        """
        if not isinstance(target, str):
            raise AttributeValueError(
                f"target must be a string, got {target!r:.80}; a graph is passed as graph=..."
            )
        if graph is not None and not isinstance(graph, Graph):
            raise AttributeValueError(f"graph must be an hr.Graph, got {graph!r:.80}")
        if config is not None and not isinstance(config, Config):
            raise ConfigError(f"config must be an hr.Config, got {config!r:.80}")
        self.graph = graph if graph is not None else get_default_graph()
        self.config = config if config is not None else Config()
        self._runtime: Runtime
        if target:
            self._runtime = host().open_runtime(target, self.config)
        else:
            self._runtime = LocalRuntime(options=self.config.options)
        self._prepared: dict[Any, PreparedStep] = {}
        self._pinned: dict[str, DeviceName] = {}
        self._lock = threading.Lock()
        self._closed = False
        self._entered = threading.local()
        self._growth = Growth()
        self._recorder = self.config.options.recorder

    def run(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """Run one step.

        Args:
            fetches: A tensor, operation, variable or name; or a list, tuple, named tuple or dict
                of these, nested as you like.
            feed_dict: Values by tensor: numbers, arrays or nested lists. Any tensor can be fed;
                what is upstream of it then does not run.

        Returns:
            The same structure with arrays in place of tensors and None in place of operations.
            The arrays are the caller's own.

        Raises:
            FetchError: if something cannot be fetched.
            FeedError: if a feed is missing, foreign, or of the wrong shape or dtype.
            UninitializedError: if the step reads variables without a value; names all of them.
            SessionClosedError: if the session was closed.
            ExecutionError: if a kernel fails.
        """
        keys: tuple[Any, ...] = ()
        values: tuple[Any, ...] = ()
        if feed_dict is not None:
            # A plain dict first: the check of others is slow.
            if type(feed_dict) is not dict and not isinstance(feed_dict, Mapping):
                raise FeedError(
                    f"feed_dict must be a dict of values by tensor, got {type(feed_dict).__name__}"
                )
            keys, values = tuple(feed_dict), tuple(feed_dict.values())
        # What is fetched most often is its own key.
        single = type(fetches) is Tensor or type(fetches) is Operation
        key = (fetches if single else fetch_key(fetches), keys)
        try:
            prepared = self._prepared.get(key)
        except TypeError:
            raise FetchError(f"cannot fetch or feed {fetches!r}") from None
        if prepared is None or self._closed:
            prepared = self._prepare(fetches, keys, key)
        return prepared.run(values)

    def make_callable(self, fetches: Any, feed_list: Sequence[Any] = ()) -> Callable[..., Any]:
        """Prepare a step, for running it with less overhead.

        Args:
            fetches: As for ``run``.
            feed_list: The tensors to feed, in the order of the callable's arguments.

        Returns:
            A function of the feeds' values that runs one step and returns what ``run`` would.
        """
        if not isinstance(feed_list, list | tuple):
            raise FeedError(f"feed_list must be a list of tensors, got {feed_list!r:.80}")
        keys = tuple(feed_list)
        odd = [key for key in keys if not isinstance(key, Hashable)]
        if odd:
            raise FeedError(f"cannot feed {odd[0]!r:.80}: expected a tensor or its name")
        prepared = self._prepare(fetches, keys, (fetch_key(fetches), keys))
        names = [feed_tensors(key, self.graph)[0].name for key in keys]

        count, run = len(names), prepared.run

        def call(*values: Any) -> Any:
            if self._closed:
                raise SessionClosedError(_CLOSED)
            if len(values) != count:
                raise FeedError(
                    f"expected {count} values, for {', '.join(names) or 'no feeds'}, got "
                    f"{len(values)}"
                )
            return run(values)

        return call

    def _prepare(self, fetches: Any, feeds: tuple[Any, ...], key: Hashable) -> PreparedStep:
        with self._lock:
            if self._closed:
                raise SessionClosedError(_CLOSED)
            known = self._prepared.get(key)
            if known is not None:
                return known
            self._growth.notice(self.graph)
            with unhindered():
                prepared = self._plan(fetches, feeds)
            self._prepared[key] = prepared
            return prepared

    def _plan(self, fetches: Any, feeds: tuple[Any, ...]) -> PreparedStep:
        """Prepare a step of a new signature."""
        flat = flatten(fetches, self.graph)
        tensors = [t for feed in feeds for t in feed_tensors(feed, self.graph)]
        for i, tensor in enumerate(tensors):
            if tensor in tensors[:i]:
                raise FeedError(f"{tensor.name!r} is fed twice")
        machine = self._runtime.machine()
        step = step_graph(tensors, flat.tensors, flat.targets, machine.kernels, self.config)
        parts = place_and_partition(
            step, machine, self.graph, self._pinned, optimize=self.config.options.optimize
        )
        registered = self._runtime.register(parts, len(flat.tensors))
        composite = feeds if len(tensors) > len(feeds) else None
        run_step: Callable[[Sequence[Any]], list[Any]] = registered.run
        if self._recorder is not None:
            ends = [*(t.name for t in flat.tensors), *(op.name for op in flat.targets)]
            run_step = self._recorder.step(run_step, listing(ends, 3))
        run = _runner(run_step, tuple(map(binder, tensors)), flat, composite)
        return PreparedStep(registered, flat, run)

    def explain(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Explanation:
        """Explain what a step is going to do: print the result. Nothing runs.

        Kernels depend on shapes. Where the fed placeholders leave dimensions open, those of the
        values in ``feed_dict`` count, or else those for which the step was last compiled.

        Args:
            fetches: As for ``run``.
            feed_dict: As for ``run``; the values are only asked for their shapes. Placeholders that
                the step needs may be left out.

        Returns:
            The parts of the step with their kernels, memory, rewrites and sources, and where
            everything is placed and why. Of a step on several tasks, the part of this one.

        Raises:
            FetchError: if something cannot be fetched.
            FeedError: if a feed is foreign, or of the wrong shape or dtype.
            SessionClosedError: if the session was closed.
        """
        # Few programs explain a step: what it takes is imported then.
        from headrace.placement.reasons import placement_reasons
        from headrace.session.explain import explain_step

        key = fetch_key(fetches)
        given = dict(feed_dict or ())
        if feed_dict is None:
            # The step as it was run last, which is compiled for what was fed then.
            known = [feeds for fetched, feeds in reversed(self._prepared) if fetched == key]
            given = dict.fromkeys(known[0]) if known else {}
        values: dict[Tensor, HostArray | None] = {}
        for feed, value in given.items():
            tensors = feed_tensors(feed, self.graph)
            parts = [None] * len(tensors) if value is None else feed_parts(feed, value)
            for tensor, part in zip(tensors, parts, strict=True):
                values[tensor] = None if part is None else binder(tensor)(part)
        flat = flatten(fetches, self.graph)
        for tensor in missing_feeds(tuple(values), flat.tensors, flat.targets):
            given[tensor] = None
            values[tensor] = None
        machine, config = self._runtime.machine(), self.config
        step = step_graph(tuple(values), flat.tensors, flat.targets, machine.kernels, config)
        pinned = dict(self._pinned)
        placed = place_step(
            step, machine, self.graph, dict(pinned), optimize=config.options.optimize
        )
        reasons = placement_reasons(*placed, machine, pinned)
        prepared = self._prepare(fetches, tuple(given), (key, tuple(given)))
        shapes = {t: _known_shape(t, value) for t, value in values.items()}
        places = {op: (str(placed[1][op]), reason) for op, reason in reasons.items()}
        return explain_step(getattr(prepared.step, "plan", None), shapes, places)

    def profile(self) -> Profile:
        """Return where the time of the steps so far went, by kernel and by type of operation.

        Raises:
            ConfigError: if the session does not measure.
        """
        if self._recorder is None:
            raise ConfigError(
                "this session does not measure its steps; open it with "
                "hr.Session(config=hr.Config(profile=True))"
            )
        return self._recorder.profile()

    def close(self) -> None:
        """End the session: cancel steps that still run, and drop its state.

        Raises:
            OSError: if the trace that ``Config(trace=...)`` asks for cannot be written.
        """
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._prepared.clear()
        self._runtime.close(SessionClosedError(_CLOSED))
        if self._recorder is not None:
            self._recorder.settle(end=True)

    @property
    def closed(self) -> bool:
        """Whether the session was closed."""
        return self._closed

    def as_default(self) -> AbstractContextManager[Session]:
        """Return a context manager that makes this the default session, and does not close it."""
        return use_session(self)

    def __enter__(self) -> Session:
        stack = ExitStack()
        stack.enter_context(use_graph(self.graph))
        stack.enter_context(use_session(self))
        stacks = getattr(self._entered, "stacks", None)
        if stacks is None:
            stacks = self._entered.stacks = []
        stacks.append(stack)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._entered.stacks.pop().close()
        self.close()

    def __reduce__(self) -> NoReturn:
        raise GraphError(f"{self!r} cannot be pickled or copied: open one in each process")

    def __repr__(self) -> str:
        return f"<Session{' closed' if self._closed else ''} on {self.graph!r}>"


def _known_shape(tensor: Tensor, value: HostArray | None) -> tuple[int, ...] | None:
    if value is not None:
        return tuple(value.shape)
    return tuple(tensor.shape.known) if tensor.shape.is_fully_defined() else None


_CLOSED = "the session was closed; open a new one with hr.Session()"


def _separate(fetched: list[Any]) -> None:
    """Copy arrays that were fetched under two names, such as a tensor and its identity."""
    seen: set[int] = set()
    for i, value in enumerate(fetched):
        if isinstance(value, np.ndarray):
            if id(value) in seen:
                fetched[i] = value.copy()
            seen.add(id(value))


def _owned(value: Any, feeds: Sequence[HostArray], tensor: Tensor) -> Any:
    """Return a fetched value that shares no memory with the session or the feeds."""
    if value is DEAD:
        raise FetchError(
            f"{tensor.name!r} is dead in this step: it depends on the branch of a switch that was "
            f"not taken\n  at {tensor.op.site}"
        )
    array = np.asarray(value)
    if array.ndim == 0:
        return array[()]
    shared = array.base is not None or not array.flags.writeable
    if shared or any(array is feed for feed in feeds):
        try:
            return array.copy()
        except MemoryError:
            raise ResourceExhaustedError(
                f"{tensor.name!r} is {array.dtype}{list(array.shape)}, of which the memory has no "
                f"room for a copy of {array.nbytes} bytes\n  at {tensor.op.site}"
            ) from None
    return array
