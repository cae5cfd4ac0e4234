"""The session: runs steps of a graph, each prepared once and then many times."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Any, NoReturn, Self

from headrace.device_name import DeviceName
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
    listing,
    shown,
)
from headrace.given import items, mapping
from headrace.graph.default_session import use_session
from headrace.graph.graph import Graph
from headrace.graph.operation import Operation
from headrace.graph.scopes import get_default_graph, too_deep, use_graph
from headrace.graph.tensor import Tensor
from headrace.plugins.host import host
from headrace.runtime.containers import reset_containers
from headrace.runtime.engine import LocalRuntime
from headrace.runtime.profile import Profile
from headrace.runtime.runtime import Runtime
from headrace.runtime.unhindered import unhindered
from headrace.session.config import Config
from headrace.session.config_proto import ConfigProto, as_config, check_shared
from headrace.session.default_configs import default_config
from headrace.session.explanation import Explanation
from headrace.session.feeds import (
    binder,
    check_fed_variables,
    feed_tensors,
    is_hashable,
)
from headrace.session.fetches import Fetches, fetch_key, flatten
from headrace.session.growth import Growth
from headrace.session.ordered import Ordering
from headrace.session.prepare import (
    log_placement,
    machine_as_asked,
    missing_feeds,
    place_and_partition,
    place_step,
    step_graph,
)
from headrace.session.run_options import RunMetadata, RunOptions, checked_options, step_stats
from headrace.session.running import PreparedStep, attribute, runner
from headrace.session.stalls import Stalls
from headrace.session.tensor_handle import Kept

if TYPE_CHECKING:
    from headrace.session.device_attributes import DeviceAttributes
    from headrace.session.partial import PartialRuns
    from headrace.session.traced import TracedRuntime


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
        self._pinned: dict[str, DeviceName] = {}
        self._lock = threading.Lock()
        self._closed = False
        self._entered = threading.local()
        self._growth = Growth()
        self._recorder = self.config.options.recorder
        self._traced: TracedRuntime | None = None
        self._partial: PartialRuns | None = None
        self._target = target
        self._ordering = Ordering(self._runtime, self.config, self.graph)
        self._as_asked = machine_as_asked(self.config, self.graph)

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
                what is upstream of it then does not run. A variable stands for its value.
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
            prepared = self._prepare(fetches, keys, key)
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
            from headrace.session.traced import TracedRuntime

            with self._lock:
                if self._traced is None:
                    self._traced = TracedRuntime(self._runtime)
            recorder = self._traced.recorder
            fetches, keys, key = signature
            prepared = self._prepare(fetches, keys, ("traced", key), self._traced.runtime)
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
        prepared = self._prepare(fetches, keys, (fetch_key(fetches), keys))
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
        signature = (fetches, keys, (fetch_key(fetches), keys))

        def call_with_options(
            *values: Any,
            options: RunOptions | None = None,
            run_metadata: RunMetadata | None = None,
        ) -> Any:
            if options is None and run_metadata is None:
                return call(*values)
            return self._run_as_asked(prepared, values, options, run_metadata, signature)

        return call_with_options

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
                from headrace.session.partial import PartialRuns

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
        prepared = self._prepare(
            None, (), key, plan=lambda: self._planned(feeds, fetches, self._runtime, done=done)
        )
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
        machine = self._as_asked(self._runtime.machine())
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

    def _prepare(
        self,
        fetches: Any,
        feeds: tuple[Any, ...],
        key: Hashable,
        runtime: Runtime | None = None,
        plan: Callable[[], PreparedStep] | None = None,
    ) -> PreparedStep:
        with self._lock:
            if self._closed:
                raise SessionClosedError(_CLOSED)
            known = self._prepared.get(key)
            if known is not None:
                return known
            self._growth.notice(self.graph)
            try:
                with unhindered():
                    prepared = (
                        self._plan(fetches, feeds, runtime or self._runtime)
                        if plan is None
                        else plan()
                    )
            except OpError as error:
                attribute(error, self.graph)
                raise
            except RecursionError:
                raise GraphError(too_deep("the step")) from None
            self._prepared[key] = prepared
            return prepared

    def _plan(self, fetches: Any, feeds: tuple[Any, ...], runtime: Runtime) -> PreparedStep:
        """Prepare a step of a new signature."""
        flat = flatten(fetches, self.graph, self.kept)
        fed = [feed_tensors(feed, self.graph) for feed in feeds]
        tensors = [tensor for several in fed for tensor in several]
        for i, tensor in enumerate(tensors):
            if tensor in tensors[:i]:
                raise FeedError(f"{tensor.name!r} is fed twice")
        counts = [len(several) for several in fed]
        composite = list(zip(feeds, counts, strict=True)) if set(counts) - {1} else None
        return self._planned(tensors, flat, runtime, feeds, composite)

    def _planned(
        self,
        tensors: Sequence[Tensor],
        flat: Fetches,
        runtime: Runtime,
        feeds: Sequence[Any] = (),
        composite: list[tuple[Any, int]] | None = None,
        done: frozenset[Operation] = frozenset(),
    ) -> PreparedStep:
        """Prepare a step that is fed tensors; ``composite`` as for ``runner``."""
        machine = self._as_asked(self._runtime.machine())
        step, _ = step_graph(tensors, flat.tensors, flat.targets, machine, self.config, done)
        check_fed_variables(feeds, step, self.graph)
        parts = place_and_partition(
            step, machine, self.graph, self._pinned, optimize=self.config.options.optimize
        )
        if self.config.log_device_placement:
            log_placement(parts)
        registered = runtime.register(parts, len(flat.tensors))
        run_within = self._ordering.of(step.graph, registered)
        step.replaced_by()
        run_step = run_within(self.config.timeout)
        if self._recorder is not None:
            ends = [*(t.name for t in flat.tensors), *(op.name for op in flat.targets)]
            run_step = self._recorder.step(run_step, listing(ends, 3))
        run_by = functools.partial(
            runner,
            binders=tuple(map(binder, tensors)),
            fetches=flat,
            composite=composite,
            graph=self.graph,
        )
        return PreparedStep(registered, flat, run_by(run_step), run_by, run_within)

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
        # lazy: few programs explain a step
        from headrace.placement.reasons import placement_reasons
        from headrace.session.explain import asked_values, explain_step, known_shape
        from headrace.session.transfers import transfers_of

        key = fetch_key(fetches)
        given = mapping(feed_dict, "feed_dict")
        if feed_dict is None:
            # The step as it was run last, which is compiled for what was fed then.
            known = [feeds for fetched, feeds in reversed(self._prepared) if fetched == key]
            given = dict.fromkeys(known[0]) if known else {}
        values = asked_values(given, self.graph)
        flat = flatten(fetches, self.graph, self.kept)
        for tensor in missing_feeds(tuple(values), flat.tensors, flat.targets):
            given[tensor] = None
            values[tensor] = None
        machine, config = self._as_asked(self._runtime.machine()), self.config
        step, rewrites = step_graph(tuple(values), flat.tensors, flat.targets, machine, config)
        pinned = dict(self._pinned)
        placed = place_step(
            step, machine, self.graph, dict(pinned), optimize=config.options.optimize
        )
        reasons = placement_reasons(*placed, machine, pinned)
        prepared = self._prepare(fetches, tuple(given), (key, tuple(given)))
        shapes = {t: known_shape(t, value) for t, value in values.items()}
        places = {op: (str(placed[1][op]), reason) for op, reason in reasons.items()}
        plan = getattr(prepared.step, "plan", None)
        moves = transfers_of(*placed, machine, list(shapes.values()))
        return explain_step(plan, shapes, places, rewrites, host().replacements, moves)

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

        machine = self._as_asked(self._runtime.machine())
        return self._recorder.profile(limits_on(machine, self.config.threads))

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
