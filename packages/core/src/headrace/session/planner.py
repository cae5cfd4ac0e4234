"""Planning the steps of a session: from what is fetched and fed to a step that is ready to run."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.device_name import DeviceName
from headrace.errors import FeedError, listing
from headrace.graph.graph import Graph
from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace.placement.place import Machine
from headrace.plugins.host import host
from headrace.runtime.engine import LocalStep
from headrace.runtime.runtime import Runtime
from headrace.session.config import Config
from headrace.session.explanation import Explanation
from headrace.session.feeds import binder, check_fed_variables, feed_tensors
from headrace.session.fetches import Fetches, flatten
from headrace.session.prepare import (
    log_placement,
    machine_as_asked,
    missing_feeds,
    place_and_partition,
    place_step,
    step_graph,
)
from headrace.session.running import PreparedStep, runner
from headrace.session.step_ordering import Ordering

if TYPE_CHECKING:
    from headrace.session.tensor_handle import Kept


class Planner:
    """Plans steps of one graph for one runtime.

    State that one step places stays where it is for all others.
    """

    def __init__(
        self, graph: Graph, config: Config, runtime: Runtime, ordering: Ordering, kept: Kept
    ) -> None:
        """Plan steps of ``graph`` on ``runtime``.

        Args:
            graph: The program's graph.
            config: How the session runs steps.
            runtime: The session's runtime.
            ordering: How its steps wait for others.
            kept: The values that the session keeps, which may be fetched and fed.
        """
        self._graph = graph
        self._config = config
        self._runtime = runtime
        self._ordering = ordering
        self._kept = kept
        self._recorder = config.options.recorder
        self._pinned: dict[str, DeviceName] = {}
        self._as_asked = machine_as_asked(config, graph)

    def machine(self) -> Machine:
        """Return the devices, as the session asks for them."""
        return self._as_asked(self._runtime.machine())

    def plan(
        self, fetches: Any, feeds: tuple[Any, ...], runtime: Runtime | None = None
    ) -> PreparedStep:
        """Plan a step of a new signature.

        Args:
            fetches: As for ``Session.run``.
            feeds: What is fed: tensors, what stands for several, or names.
            runtime: Runs the step, with the session's state and devices; the session's if None.

        Raises:
            FetchError: if something cannot be fetched.
            FeedError: if a feed is foreign, given twice, or missing.
        """
        flat = flatten(fetches, self._graph, self._kept)
        fed = [feed_tensors(feed, self._graph) for feed in feeds]
        tensors = [tensor for several in fed for tensor in several]
        for i, tensor in enumerate(tensors):
            if tensor in tensors[:i]:
                raise FeedError(f"{tensor.name!r} is fed twice")
        counts = [len(several) for several in fed]
        composite = list(zip(feeds, counts, strict=True)) if set(counts) - {1} else None
        return self._planned(tensors, flat, runtime or self._runtime, feeds, composite)

    def plan_piece(
        self, feeds: Sequence[Tensor], fetches: Fetches, done: frozenset[Operation]
    ) -> PreparedStep:
        """Plan a piece of a partial run, in which the operations of ``done`` ran before."""
        return self._planned(feeds, fetches, self._runtime, done=done)

    def _planned(
        self,
        tensors: Sequence[Tensor],
        flat: Fetches,
        runtime: Runtime,
        feeds: Sequence[Any] = (),
        composite: list[tuple[Any, int]] | None = None,
        done: frozenset[Operation] = frozenset(),
    ) -> PreparedStep:
        """Plan a step that is fed tensors; ``composite`` as for ``runner``."""
        config, machine = self._config, self.machine()
        step, _ = step_graph(tensors, flat.tensors, flat.targets, machine, config, done)
        check_fed_variables(feeds, step, self._graph)
        parts = place_and_partition(
            step, machine, self._graph, self._pinned, optimize=config.options.optimize
        )
        if config.log_device_placement:
            log_placement(parts)
        registered = runtime.register(parts, len(flat.tensors))
        run_within = self._ordering.of(step.graph, registered)
        step.replaced_by()
        run_step = run_within(config.timeout)
        if self._recorder is not None:
            ends = [*(t.name for t in flat.tensors), *(op.name for op in flat.targets)]
            run_step = self._recorder.step(run_step, listing(ends, 3))
        run_by = functools.partial(
            runner,
            binders=tuple(map(binder, tensors)),
            fetches=flat,
            composite=composite,
            graph=self._graph,
        )
        # Where nothing is done around each run.
        repeat = None
        if isinstance(registered, LocalStep) and run_step == registered.run and not tensors:
            repeat = registered.repeat
        return PreparedStep(registered, flat, run_by(run_step), run_by, run_within, repeat)

    def explain(
        self,
        fetches: Any,
        given: Mapping[Any, Any],
        prepare: Callable[[tuple[Any, ...]], PreparedStep],
    ) -> Explanation:
        """Explain what a step is going to do.

        Args:
            fetches: As for ``Session.run``.
            given: Values of feeds, of which the shapes count; None for what is not known.
            prepare: Returns the prepared step that is fed so.

        Raises:
            FetchError: if something cannot be fetched.
            FeedError: if a feed is foreign, or of the wrong shape or dtype.
        """
        # lazy: few programs explain a step
        from headrace.placement.reasons import placement_reasons
        from headrace.session.explain import asked_values, explain_step, known_shape
        from headrace.session.transfers import transfers_of

        values = asked_values(given, self._graph)
        flat = flatten(fetches, self._graph, self._kept)
        missing = missing_feeds(tuple(values), flat.tensors, flat.targets)
        values.update(dict.fromkeys(missing))
        machine, config = self.machine(), self._config
        step, rewrites = step_graph(tuple(values), flat.tensors, flat.targets, machine, config)
        pinned = dict(self._pinned)
        placed = place_step(
            step, machine, self._graph, dict(pinned), optimize=config.options.optimize
        )
        reasons = placement_reasons(*placed, machine, pinned)
        prepared = prepare((*given, *missing))
        shapes = {t: known_shape(t, value) for t, value in values.items()}
        places = {op: (str(placed[1][op]), reason) for op, reason in reasons.items()}
        plan = getattr(prepared.step, "plan", None)
        moves = transfers_of(*placed, machine, list(shapes.values()))
        return explain_step(plan, shapes, places, rewrites, host().replacements, moves)
