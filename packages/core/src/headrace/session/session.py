"""The session: runs steps of a graph, each prepared once and then many times."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Any, NoReturn, Self

from headrace.arguments import items, mapping
from headrace.errors import (
    ArgumentTypeError,
    ConfigError,
    FailedPreconditionError,
    FeedError,
    FeedTypeError,
    FetchError,
    GraphError,
    InvalidArgumentError,
    NestingError,
    OpError,
    SessionClosedError,
    UnimplementedError,
    shown,
)
from headrace.graph.default_session import use_session
from headrace.graph.graph import Graph
from headrace.graph.operation import Operation
from headrace.graph.scopes import get_default_graph, too_deep, use_graph
from headrace.graph.tensor import Tensor
from headrace.plugins.host import host
from headrace.runtime.engine import LocalRuntime
from headrace.runtime.garbage_collection import unhindered
from headrace.runtime.profiling.profile import Profile
from headrace.runtime.runtime import Runtime
from headrace.runtime.state.containers import reset_containers
from headrace.session.config import Config
from headrace.session.config_forms import as_config, check_shared
from headrace.session.default_configs import default_config
from headrace.session.explanation import Explanation
from headrace.session.feeds import feed_tensors, is_hashable
from headrace.session.fetches import Fetches, fetch_key
from headrace.session.graph_growth import Growth
from headrace.session.planner import Planner
from headrace.session.run_options import RunMetadata, RunOptions, checked_options, step_stats
from headrace.session.running import PreparedStep, attribute
from headrace.session.stalls import Stalls
from headrace.session.step_ordering import Ordering
from headrace.session.tensor_handle import Kept

if TYPE_CHECKING:
    from headrace.session.config_proto import ConfigProto
    from headrace.session.device_attributes import DeviceAttributes
    from headrace.session.partial_run import PartialRuns
    from headrace.session.traced_runtime import TracedRuntime


class Session:
    """Runs steps of a graph.

    A session without a target runs everything in this process and keeps its own variables. It may
    be used by many threads at once; steps then run concurrently.

    Attributes:
        graph: The graph whose parts it runs.
        config: How it runs them.
    """

    def __init__(
        self,
        target: str = "",
        graph: Graph | None = None,
        config: Config | ConfigProto | None = None,
    ) -> None:
        """Open a session.

        Args:
            target: Empty for this process, or the target of a cluster.
            graph: The graph; the default graph if None.
            config: Settings; those of the target, or the defaults, if None.

        Raises:
            ArgumentTypeError: if target or graph is something else.
            ConfigError: if config is none, or asks for state of its own in a cluster.
            PluginError: if no plugin knows the target.
        """
        if not isinstance(target, str):
            raise ArgumentTypeError(
                f"target must be a string, got {shown(target)}; a graph is passed as graph=..."
            )
        if graph is not None and not isinstance(graph, Graph):
            raise ArgumentTypeError(f"graph must be an hr.Graph, got {shown(graph)}")
        self.graph = graph if graph is not None else get_default_graph()
        self.config = as_config(default_config(target) if config is None else config)
        self._runtime: Runtime
        if target:
            check_shared(config)
            self._runtime = host().open_runtime(target, self.config)
        else:
            local = LocalRuntime(options=self.config.options)
            local.watch = Stalls(self, self.graph, self.config.wait_report)
            self._runtime = local
        self._prepared: dict[Any, PreparedStep] = {}
        self.kept = Kept(self)
        self._lock = threading.Lock()
        self._closed = False
        self._entered = threading.local()
        self._growth = Growth()
        self._recorder = self.config.options.recorder
        self._traced: TracedRuntime | None = None
        self._partial: PartialRuns | None = None
        self._target = target
        self._ordering = Ordering(self._runtime, self.config, self.graph)
        self._planner = Planner(self.graph, self.config, self._runtime, self._ordering, self.kept)

    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        """Run one step.

        Args:
            fetches: A tensor, operation, variable or name; or a list, tuple, named tuple or dict
                of these, nested as you like.
            feed_dict: Values by tensor: numbers, arrays or nested lists. Any tensor can be fed;
                what is upstream of it then does not run. A variable stands for its value. Arrays
                of other libraries, such as PyTorch's and JAX's, are read where they are (DLPack).
            options: How this step runs.
            run_metadata: Gets what is learnt of the run.

        Returns:
            The same structure with arrays in place of tensors and None in place of operations.
            The arrays are the caller's own.

        Raises:
            FetchError: if something cannot be fetched.
            FeedError: if a feed is missing, foreign, or of the wrong shape or dtype.
            UninitializedError: if the step reads variables without a value; names all of them.
            SessionClosedError: if the session was closed.
            ExecutionError: if a kernel fails.
            DeadlineExceededError: if the step waits for longer than it may take.
            ConfigError: if ``options`` or ``run_metadata`` is something else.
        """
        keys: tuple[Any, ...] = ()
        values: tuple[Any, ...] = ()
        if feed_dict is not None:
            # A plain dict first: the check of others is slow, and they may have no end.
            if type(feed_dict) is not dict and not isinstance(feed_dict, Mapping):
                raise FeedTypeError(
                    f"feed_dict must be a dict of values by tensor, got {type(feed_dict).__name__}"
                )
            if type(feed_dict) is not dict:
                feed_dict = mapping(feed_dict, "feed_dict")
            keys, values = tuple(feed_dict), tuple(feed_dict.values())
        # What is fetched most often is its own key.
        single = type(fetches) is Tensor or type(fetches) is Operation
        key = (fetches if single else fetch_key(fetches), keys)
        try:
            prepared = self._prepared.get(key)
        except TypeError:
            raise FetchError(f"cannot fetch or feed {shown(fetches)}") from None
        if prepared is None and fetches in ([], (), {}) and not len(self.graph):
            raise FailedPreconditionError("the graph of the session has no operations to run")
        if prepared is None or self._closed:
            prepared = self._prepare(key, lambda: self._planner.plan(fetches, keys))
        if options is None and run_metadata is None:
            return prepared.run(values)
        return self._run_as_asked(prepared, values, options, run_metadata, (fetches, keys, key))

    def _run_as_asked(
        self,
        prepared: PreparedStep,
        values: Sequence[Any],
        options: RunOptions | None,
        run_metadata: RunMetadata | None,
        signature: tuple[Any, tuple[Any, ...], Hashable],
    ) -> Any:
        """Run a step with options, and learn of it."""
        asked = checked_options(options, run_metadata)
        recorder = None
        if asked.trace_level != RunOptions.NO_TRACE:
            # lazy: few programs trace single runs
            from headrace.session.traced_runtime import TracedRuntime

            with self._lock:
                if self._traced is None:
                    self._traced = TracedRuntime(self._runtime)
            recorder = self._traced.recorder
            fetches, keys, key = signature
            traced = self._traced.runtime
            prepared = self._prepare(
                ("traced", key), lambda: self._planner.plan(fetches, keys, traced)
            )
        run = prepared.run
        if asked.timeout is not None:
            run = prepared.run_by(prepared.run_within(asked.timeout))
        if recorder is None:
            return run(values)
        assert self._traced is not None
        with self._traced.one_at_a_time:
            recorder.take()
            try:
                return run(values)
            finally:
                events = recorder.take()
                if run_metadata is not None:
                    run_metadata.step_stats = step_stats(events)

    def make_callable(
        self, fetches: Any, feed_list: Sequence[Any] | None = None, accept_options: bool = False
    ) -> Callable[..., Any]:
        """Prepare a step, for running it with less overhead.

        Args:
            fetches: As for ``run``.
            feed_list: The tensors to feed, in the order of the callable's arguments.
            accept_options: Whether the callable takes ``options`` and ``run_metadata``, as ``run``
                does.

        Returns:
            A function of the feeds' values that runs one step and returns what ``run`` would.
        """
        if feed_list is not None and not isinstance(feed_list, list | tuple):
            raise ArgumentTypeError(f"feed_list must be a list of tensors, got {shown(feed_list)}")
        keys = tuple(items(feed_list, "feed_list")) if feed_list else ()
        if odd := [key for key in keys if not is_hashable(key)]:
            raise FeedError(f"cannot feed {shown(odd[0])}: expected a tensor or its name")
        key = (fetch_key(fetches), keys)
        prepared = self._prepare(key, lambda: self._planner.plan(fetches, keys))
        names = ", ".join(feed_tensors(key, self.graph)[0].name for key in keys) or "no feeds"

        count, run = len(keys), prepared.run

        def call(*values: Any) -> Any:
            if self._closed:
                raise SessionClosedError(_CLOSED)
            if len(values) != count:
                raise FeedError(f"expected {count} values, for {names}, got {len(values)}")
            return run(values)

        if not accept_options:
            return call
        signature = (fetches, keys, key)

        def call_with_options(
            *values: Any,
            options: RunOptions | None = None,
            run_metadata: RunMetadata | None = None,
        ) -> Any:
            if options is None and run_metadata is None:
                return call(*values)
            return self._run_as_asked(prepared, values, options, run_metadata, signature)

        return call_with_options

    def run_while(self, fetches: Any, condition: Callable[[], bool]) -> None:
        """Run a step again and again while a condition holds, as threads do that fill queues.

        A run that waits until there is room in a queue may be gone on with by the thread that
        makes room, and so may runs after it, where they are short: two threads that run Python in
        turns hold each other up. What the runs do is the same.

        Args:
            fetches: As for ``run``; of what is fetched nothing is handed back, and nothing is fed.
            condition: Called without arguments before each run, by any thread; it must not wait.

        Raises:
            HeadraceError: what ``run`` raises; there are no more runs then.
        """
        key = (fetch_key(fetches), ())
        prepared = self._prepare(key, lambda: self._planner.plan(fetches, ()))
        if prepared.repeat is None:
            run = self.make_callable(fetches)
            while condition():
                run()
            return
        try:
            prepared.repeat(condition)
        except OpError as error:
            attribute(error, self.graph)
            raise

    def partial_run_setup(self, fetches: Any, feeds: Sequence[Any] | None = None) -> str:
        """Set up a step that is then run piece by piece, with ``partial_run``.

        Args:
            fetches: All that the pieces fetch, as for ``run``. Operations in it run in the piece
                that fetches the last tensor.
            feeds: All that the pieces are fed: tensors or their names.

        Returns:
            The handle of one run of the step. It ends when all was fetched and all was fed.

        Raises:
            FetchError: if something cannot be fetched.
            FeedError: if something cannot be fed.
            SessionClosedError: if the session was closed.
        """
        if self._closed:
            raise SessionClosedError(_CLOSED)
        self._ordering.check_pieces()
        with self._lock:
            if self._partial is None:
                # lazy: few programs run steps piece by piece
                from headrace.session.partial_run import PartialRuns

                self._partial = PartialRuns(self.graph, self._run_piece)
        return self._partial.set_up(fetches, feeds)

    def partial_run(
        self, handle: str, fetches: Any, feed_dict: Mapping[Any, Any] | None = None
    ) -> Any:
        """Run the next piece of a step.

        What ran in an earlier piece does not run again: random numbers are drawn and variables
        changed once.

        Args:
            handle: What ``partial_run_setup`` returned.
            fetches: What to fetch now: some of what was set up, each tensor once.
            feed_dict: Values for some of the feeds that were set up, each fed once.

        Returns:
            What ``run`` would.

        Raises:
            InvalidArgumentError: if the handle is of no run that goes on, or something was not set
                up, was fetched or fed already, or cannot be computed of what was fed so far.
            FailedPreconditionError: if operations are fetched.
            SessionClosedError: if the session was closed.
        """
        if self._closed:
            raise SessionClosedError(_CLOSED)
        if self._partial is None:
            raise InvalidArgumentError("call session.partial_run_setup before partial_run")
        return self._partial.run(handle, fetches, feed_dict)

    def _run_piece(
        self,
        feeds: Sequence[Tensor],
        values: Sequence[Any],
        fetches: Fetches,
        done: frozenset[Operation],
    ) -> list[Any]:
        """Run a piece of a partial run; arguments as of ``RunPiece``."""
        key = ("piece", tuple(feeds), fetches.tensors, fetches.targets, done)
        prepared = self._prepare(key, lambda: self._planner.plan_piece(feeds, fetches, done))
        found: list[Any] = prepared.run(values)
        return found

    def fence(self, timeout: float = 60.0) -> AbstractContextManager[None]:
        """Return a context manager in which nobody else changes variables.

        Steps of other threads, sessions and tasks that would change variables which sessions share
        wait until the block is left; those under way are waited for before it begins. What is read
        in it, in any number of steps, is of one moment. Steps of the thread itself go on.

        Args:
            timeout: How many seconds to wait for steps that are under way.

        Raises:
            DeadlineExceededError: at the beginning, if they take longer.
            UnimplementedError: if what runs the session's steps has no fences.
        """
        return self._ordering.fence(timeout)

    def list_devices(self) -> list[DeviceAttributes]:
        """Return the devices on which the session runs operations.

        Raises:
            SessionClosedError: if the session was closed.
        """
        # lazy: few programs ask
        from headrace.session.device_attributes import attributes_of

        if self._closed:
            raise SessionClosedError(_CLOSED)
        machine = self._planner.machine()
        return [attributes_of(device, machine.client) for device in machine.devices]

    @staticmethod
    def reset(
        target: str, containers: Sequence[str] | str | None = None, config: Any = None
    ) -> None:
        """Drop the state in named containers of this process, on all devices.

        Args:
            target: Empty: the containers of other processes are theirs.
            containers: The names of containers; all of them if None or empty.
            config: Not used.

        Raises:
            UnimplementedError: if a target is given.
        """
        del config
        if target:
            raise UnimplementedError(
                f"Session.reset drops the state of this process, not that of {shown(target)}: each "
                "process resets its own, with hr.reset_containers"
            )
        reset_containers(
            *(
                [containers]
                if isinstance(containers, str)
                else items(containers or (), "containers")
            )
        )

    @property
    def graph_def(self) -> Any:
        """The graph as a ``GraphDef``, TensorFlow's message; needs the package headrace-io."""
        return self.graph.as_graph_def()

    @property
    def sess_str(self) -> bytes:
        """The target, as bytes."""
        return self._target.encode()

    def _prepare(self, key: Hashable, plan: Callable[[], PreparedStep]) -> PreparedStep:
        with self._lock:
            if self._closed:
                raise SessionClosedError(_CLOSED)
            known = self._prepared.get(key)
            if known is not None:
                return known
            self._growth.notice(self.graph)
            try:
                with unhindered():
                    prepared = plan()
            except OpError as error:
                attribute(error, self.graph)
                raise
            except RecursionError:
                raise GraphError(too_deep("the step")) from None
            self._prepared[key] = prepared
            return prepared

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
        key = fetch_key(fetches)
        given = mapping(feed_dict, "feed_dict")
        if feed_dict is None:
            # The step as it was run last, which is compiled for what was fed then.
            known = [feeds for fetched, feeds in reversed(self._prepared) if fetched == key]
            given = dict.fromkeys(known[0]) if known else {}

        def prepare(feeds: tuple[Any, ...]) -> PreparedStep:
            return self._prepare((key, feeds), lambda: self._planner.plan(fetches, feeds))

        return self._planner.explain(fetches, given, prepare)

    def profile(self) -> Profile:
        """Return where the time of the steps so far went, by kernel and by type of operation.

        The first profile of a process measures what the machine can do, in a fifth of a second, so
        that each row says which part of that it reached.

        Raises:
            ConfigError: if the session does not measure.
        """
        if self._recorder is None:
            raise ConfigError(
                "this session does not measure its steps; open it with "
                "hr.Session(config=hr.Config(profile=True))"
            )
        # lazy: few programs ask where their time goes
        from headrace.session.limits import limits_on

        return self._recorder.profile(limits_on(self._planner.machine(), self.config.threads))

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
        self._ordering.close(SessionClosedError(_CLOSED))
        self._runtime.close(SessionClosedError(_CLOSED))
        if self._traced is not None:
            self._traced.runtime.close(SessionClosedError(_CLOSED))
        if self._recorder is not None:
            self._recorder.settle(end=True)

    @property
    def closed(self) -> bool:
        """Whether the session was closed."""
        return self._closed

    def as_default(self) -> AbstractContextManager[Session]:
        """Return a context manager that makes this the default session, and does not close it."""
        return use_session(self)

    def __enter__(self) -> Self:
        stacks: list[ExitStack] = self._entered.__dict__.setdefault("stacks", [])
        if stacks:
            raise NestingError("the session's block is open already; use session.as_default()")
        stacks.append(stack := ExitStack())
        stack.enter_context(use_graph(self.graph))
        stack.enter_context(use_session(self))
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._entered.stacks.pop().close()
        self.close()

    def __reduce__(self) -> NoReturn:
        raise GraphError(f"{shown(self)} cannot be pickled or copied: open one in each process")

    def __repr__(self) -> str:
        return f"<Session{' closed' if self._closed else ''} on {self.graph!r}>"


_CLOSED = "the session was closed; open a new one with hr.Session()"
