"""``SyncReplicasOptimizer``: gradients of several replicas, applied together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, final

import headrace as hr
from headrace import IndexedSlices, Operation, Tensor, Variable
from headrace.errors import (
    ArgumentTypeError,
    AttributeValueError,
    FailedPreconditionError,
    GraphError,
    shown,
    told,
)
from headrace.extend.arguments import items, real
from headrace.extend.devices import DeviceName
from headrace.extend.faults import fault_point, has_faults
from headrace_train.accumulators import ConditionalAccumulator, SparseConditionalAccumulator
from headrace_train.optimizers import Optimizer
from headrace_train.optimizers.checks import Gradient, checked_gradient, checked_step
from headrace_train.queues import FIFOQueue
from headrace_train.queues.arguments import handle, whole_number
from headrace_train.runners import QueueRunner
from headrace_train.saver.snapshot import PAUSES
from headrace_train.sync_replicas.admission import CHIEFS, WORKER
from headrace_train.sync_replicas.hook import SyncReplicasHook
from headrace_train.sync_replicas.operations import SyncReplicasCounters, SyncReplicasOperations
from headrace_train.sync_replicas.replicas import (
    sync_replicas,
    sync_replicas_add_tokens,
    sync_replicas_admit,
    sync_replicas_admitted,
    sync_replicas_close,
    sync_replicas_counters,
    sync_replicas_finish,
    sync_replicas_join,
    sync_replicas_leave,
    sync_replicas_open,
    sync_replicas_pause,
    sync_replicas_resume,
    sync_replicas_take_over,
    sync_replicas_task,
    sync_replicas_token,
)

# The collection of the variables whose gradients a graph's optimizers gather.
_GATHERED = "sync_replicas_variables"
# What gives out tokens is called as where TensorFlow puts them into a queue.
_TOKENS = "sync_token_q_EnqueueMany"


@final
class SyncReplicasOptimizer(Optimizer):
    """Applies the mean of the gradients of several replicas at once, with another optimizer.

    Each replica runs the operation that ``minimize`` returns, as if it were alone. That computes
    its gradients, asks whether the step wants them, brings them, and waits until the next step
    begins. The chief runs a thread besides, which waits until a step has enough gradients and
    applies their mean. The hook of ``make_session_run_hook`` does all that has to be done besides.

    All variables use the gradients of the same replicas, added up in the order of the replicas. A
    gradient that was computed for an earlier step is refused, and so is one that comes when its
    step has enough; what is refused does not travel. With ``total_num_replicas`` above
    ``replicas_to_aggregate`` the slowest replicas of each step are not waited for.

    Example:
        ::

            optimizer = hr.train.SyncReplicasOptimizer(
                hr.train.GradientDescentOptimizer(0.1), replicas_to_aggregate=3
            )
            train = optimizer.minimize(loss, hr.train.get_or_create_global_step())
            hooks = [optimizer.make_session_run_hook(cluster.is_chief)]
            with hr.train.MonitoredTrainingSession(
                cluster.target, cluster.is_chief, hooks=hooks
            ) as session:
                while not session.should_stop():
                    session.run(train)

    Attributes:
        local_step_init_op: Sets the step of a replica that is not the chief.
        chief_init_op: Likewise, of the chief, and begins the training.
        ready_for_local_init_op: [n], string: the names of what these two need and has no value.
        operations: What the hook runs at the end; None before ``apply_gradients``.

    References:
        J. Chen, X. Pan, R. Monga, S. Bengio and R. Jozefowicz, "Revisiting Distributed
        Synchronous SGD", 2016, https://arxiv.org/abs/1604.00981
    """

    _single_write = True

    def __init__(
        self,
        opt: Any,
        replicas_to_aggregate: int,
        total_num_replicas: int | None = None,
        variable_averages: Any = None,
        variables_to_average: Any = None,
        use_locking: bool = False,
        name: str = "sync_replicas",
        *,
        replica_index: int | None = None,
        timeout_secs: float = 600.0,
    ) -> None:
        """Choose how many replicas there are, and how many make a step.

        Args:
            opt: The optimizer that applies the gradients.
            replicas_to_aggregate: How many gradients make a step.
            total_num_replicas: How many replicas there are; ``replicas_to_aggregate`` if None. With
                more, those are backup replicas; with fewer, replicas bring several gradients.
            variable_averages: An ``ExponentialMovingAverage`` to update after each step.
            variables_to_average: The variables of which it keeps averages.
            use_locking: Ignored: one thread applies all gradients.
            name: Prefix of what is built, and the name by which replicas meet.
            replica_index: Which of the replicas this is. If None, the index of the task that runs
                the replica; outside of a cluster replicas are told apart by nothing, and gradients
                are added up as they come.
            timeout_secs: After how many seconds a replica that waits for the next step fails.

        Raises:
            ArgumentTypeError: if ``opt`` is no optimizer.
            AttributeValueError: if a number is out of range.
        """
        super().__init__(use_locking, name)
        if not isinstance(opt, Optimizer):
            raise ArgumentTypeError(f"opt must be an optimizer, got {shown(opt)}")
        if total_num_replicas is None:
            total_num_replicas = replicas_to_aggregate
        self._opt = opt
        self._wanted = _at_least_one(replicas_to_aggregate, "replicas_to_aggregate")
        self._total = _at_least_one(total_num_replicas, "total_num_replicas")
        if replica_index is not None:
            replica_index = whole_number(replica_index, "replica_index")
            if not 0 <= replica_index < self._total:
                raise AttributeValueError(
                    f"replica_index must be from 0 to {told(self._total - 1)}, as there are "
                    f"{told(self._total)} replicas; got {told(replica_index)}"
                )
        if not real(timeout_secs, "timeout_secs") > 0:
            raise AttributeValueError(f"timeout_secs must be above 0, got {shown(timeout_secs)}")
        self._index = replica_index
        self._timeout_secs = real(timeout_secs, "timeout_secs")
        self._variable_averages = variable_averages
        self._variables_to_average = variables_to_average
        self.operations: SyncReplicasOperations | None = None
        self._chief_queue_runner: QueueRunner | None = None

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Gradient | None, Any]]:
        """Return pairs of gradient and variable, those of this replica.

        Args:
            *args: Arguments of ``Optimizer.compute_gradients``.
            **kwargs: Likewise.
        """
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(  # type: ignore[override]
        self,
        grads_and_vars: Iterable[tuple[Any, Variable]],
        global_step: Variable | None = None,
        name: str | None = None,
    ) -> Tensor:
        """Return what a replica runs in each step: it brings its gradients, and awaits the next.

        Args:
            grads_and_vars: Pairs as from ``compute_gradients``; those without a gradient are passed
                over.
            global_step: An integer variable that counts steps.
            name: Ignored.

        Returns:
            [], the step for which the replica computes next.

        Raises:
            AttributeValueError: if there are no variables, no global step, or a gradient is none.
            GraphError: if another optimizer gathers gradients of one of the variables.
        """
        pairs = items(grads_and_vars, "grads_and_vars")
        if not pairs:
            raise AttributeValueError("Must supply at least one variable")
        if global_step is None:
            raise AttributeValueError("Global step is required to check staleness")
        self._global_step = checked_step(global_step)
        self._claim([v for g, v in pairs if g is not None])
        anchor = hr.no_op(name="sync_rep_anchor")
        with hr.colocate_with(anchor), hr.container(""):
            # Not with the variables: each replica has a step and an index of its own.
            self._local_step = Variable(
                0,
                trainable=False,
                collections=[hr.GraphKeys.LOCAL_VARIABLES],
                dtype=global_step.dtype,
                name="sync_rep_local_step",
            )
            self._task = sync_replicas_task(name="sync_rep_task")
            self._replica = (
                self._task
                if self._index is None
                else hr.constant(self._index, hr.int64, name="sync_rep_index")
            )
        self.ready_for_local_init_op = hr.report_uninitialized_variables(hr.global_variables())
        around = hr.get_default_graph().get_name_scope()
        with hr.name_scope(None, self._name):
            return self._build(pairs, f"{around}/" if around else "")

    def _build(self, pairs: Sequence[tuple[Any, Variable]], around: str) -> Tensor:
        brought = {v: self._checked(g, v) for g, v in pairs if g is not None}
        local_step = self._local_step.value()
        with hr.device(_task_of(self._global_step)):
            self._handle = handle(
                sync_replicas,
                "admission",
                f"{self._name}/{self._global_step.op_name}",
                replicas_to_aggregate=self._wanted,
                total_num_replicas=self._total,
                gradients=tuple(f"{v.op_name} {v.dtype}{v.shape.plain}" for v in brought),
            )
            joined = sync_replicas_join(self._handle, self._replica, self._task)
            # What programs hold has the names that TensorFlow gives it: this of the scope around,
            # the rest none.
            with hr.control_dependencies([joined]), hr.name_scope(around):
                self.local_step_init_op = self._local_step.assign(self._global_step)
            # Only when all gradients are there: who is slow must not hold a place.
            with hr.control_dependencies([part for g in brought.values() for part in _parts(g)]):
                number = sync_replicas_admit(self._handle, self._replica, local_step)
            numbers = sync_replicas_admitted(self._handle)
        if has_faults():
            number = _passing_a_point(number)
        accumulators = {v: self._accumulator(g, v) for v, g in brought.items()}
        pushed = hr.cond(
            hr.greater_equal(number, 0),
            lambda: _after([_pushed(a, brought[v], number) for v, a in accumulators.items()]),
            lambda: hr.constant(False),
        )
        with hr.device(_task_of(self._global_step)), hr.control_dependencies([pushed]):
            token = sync_replicas_token(self._handle, self._replica, number, self._timeout_secs)
        # The token follows from the step that was read, by way of another task: there nobody sees
        # that the read comes first.
        with hr.control_dependencies([local_step]), hr.name_scope(""):
            train_op: Tensor = self._local_step.assign(hr.cast(token, self._local_step.dtype))

        taken = [
            (None, v) if g is None else (_taken(accumulators[v], numbers, v), v) for g, v in pairs
        ]
        self._build_chief(taken)
        return train_op

    def _build_chief(self, taken: Sequence[tuple[Any, Variable]]) -> None:
        """Build what the chief runs: in a thread, and at the beginning."""
        # What the chief applies does not depend on losses, which are those of the replica.
        with self._opt.apart_from_losses(self._global_step.graph), hr.name_scope(""):
            update = self._opt.apply_gradients(taken, self._global_step)
        last: Any = update
        if self._variable_averages is not None:
            with hr.control_dependencies([last]), hr.name_scope(""):
                last = self._variable_averages.apply(self._variables_to_average)
        with hr.device(_task_of(self._global_step)):
            with hr.control_dependencies([last]):
                step = self._global_step.value()
                tokens = max(self._total, self._wanted)
                with hr.name_scope(""):
                    finish = sync_replicas_finish(self._handle, step, tokens, name=_TOKENS)
            begin = sync_replicas_open(self._handle, self._global_step)
            self.chief_init_op = hr.group(self.local_step_init_op, begin)
            rest = sync_replicas_close(self._handle, everybody=False)
            self.operations = SyncReplicasOperations(
                _operation(sync_replicas_leave(self._handle, self._replica)),
                _operation(sync_replicas_close(self._handle, everybody=True)),
                sync_replicas_counters(self._handle),
            )
            self._global_step.graph.add_to_collection(
                PAUSES,
                (
                    _operation(sync_replicas_pause(self._handle)),
                    _operation(sync_replicas_resume(self._handle)),
                ),
            )
            # A runner needs a queue; what the thread waits for is the step.
            with hr.name_scope(""):
                queue = FIFOQueue(
                    1, hr.int32, (), name="dummy_queue", shared_name=f"{self._name}/dummy_queue"
                )
        self._chief_queue_runner = QueueRunner(queue, [_operation(finish)], cancel_op=rest)

    def get_chief_queue_runner(self) -> QueueRunner:
        """Return the runner whose thread applies the gradients, for the chief to start.

        Raises:
            FailedPreconditionError: if there are no gradients yet.
        """
        if self._chief_queue_runner is None:
            raise SyncReplicasOrderError("Should be called after apply_gradients().")
        return self._chief_queue_runner

    def get_init_tokens_op(self, num_tokens: int = -1) -> Operation:
        """Return what gives out tokens at the beginning, so that replicas need not wait at once.

        Where there are fewer replicas than gradients in a step, the first step needs them.

        Args:
            num_tokens: How many; ``replicas_to_aggregate`` if -1.

        Raises:
            FailedPreconditionError: if there are no gradients yet.
            AttributeValueError: if the first step needs more.
        """
        if self.operations is None:
            raise SyncReplicasOrderError(
                "get_init_tokens_op() should be called after apply_gradients()."
            )
        count = self._tokens_at_first(num_tokens)
        if count <= 0:
            return hr.no_op(name="no_init_tokens")
        with hr.device(_task_of(self._global_step)), hr.name_scope(""):
            return _operation(
                sync_replicas_add_tokens(self._handle, self._global_step, count, name=_TOKENS)
            )

    def take_over_op(self, num_tokens: int = -1) -> Operation:
        """Return what goes on for a chief that is lost, in a graph that is not finalized.

        Args:
            num_tokens: As for ``get_init_tokens_op``.
        """
        count = max(self._tokens_at_first(num_tokens), 0)
        with hr.device(_task_of(self._global_step)), hr.name_scope(f"{self._name}/"):
            return _operation(sync_replicas_take_over(self._handle, self._global_step, count))

    def _tokens_at_first(self, num_tokens: int) -> int:
        count = whole_number(num_tokens, "num_tokens")
        needed = self._wanted - self._total
        if count == -1:
            return self._wanted
        if count < needed:
            raise AttributeValueError(
                f"Too few tokens to finish the first step: {count} (given) vs {needed} (needed)"
            )
        return count

    def make_session_run_hook(self, is_chief: bool, num_tokens: int = -1) -> SyncReplicasHook:
        """Return the hook that begins and ends the training of a monitored session.

        Args:
            is_chief: Whether the session is that of the chief.
            num_tokens: As for ``get_init_tokens_op``.
        """
        return SyncReplicasHook(self, is_chief, num_tokens)

    def counters(self, summaries: bool = False) -> SyncReplicasCounters:
        """Return tensors of what has happened so far, in all replicas.

        Args:
            summaries: Whether to add a summary of each, named after the optimizer.

        Raises:
            FailedPreconditionError: if there are no gradients yet.
        """
        if self.operations is None:
            raise SyncReplicasOrderError("counters() should be called after apply_gradients().")
        counts = self.operations.counts
        waited_secs = hr.cast(counts[3], hr.float64) * 1e-6
        made = SyncReplicasCounters(counts[0], counts[1], counts[2], waited_secs, counts[4])
        if summaries:
            for label, value in made._asdict().items():
                hr.summary.scalar(f"{self._name}/{label}", hr.cast(value, hr.float32))
        return made

    def check_tasks(self, devices: Iterable[str]) -> None:
        """Refuse a cluster whose workers can never bring what a step needs.

        Args:
            devices: The names of the devices of its tasks.

        Raises:
            AttributeValueError: if there are too few workers.
        """
        names = map(DeviceName.parse, devices)
        tasks = {(n.job, n.task) for n in names if n.job == WORKER or n.job in CHIEFS}
        each = -(-self._wanted // self._total)
        if tasks and self._index is None and len(tasks) * each < self._wanted:
            raise AttributeValueError(
                f"{self._name}: a step needs {self._wanted} gradients, {each} of each replica, but "
                f"the cluster has {len(tasks)} workers; start {-(-self._wanted // each)}, or pass "
                f"replicas_to_aggregate={len(tasks) * each}"
            )

    def get_slot(self, *args: Any, **kwargs: Any) -> Variable | None:
        """Return a slot of the optimizer that applies the gradients.

        Args:
            *args: Arguments of ``Optimizer.get_slot``.
            **kwargs: Likewise.
        """
        return self._opt.get_slot(*args, **kwargs)

    def variables(self) -> list[Variable]:
        """Return the variables of state of the optimizer that applies the gradients."""
        return self._opt.variables()

    def get_slot_names(self, *args: Any, **kwargs: Any) -> list[str]:
        """Return the names of the slots of the optimizer that applies the gradients.

        Args:
            *args: Arguments of ``Optimizer.get_slot_names``.
            **kwargs: Likewise.
        """
        return self._opt.get_slot_names(*args, **kwargs)

    def _claim(self, variables: Sequence[Variable]) -> None:
        """Refuse variables whose gradients another optimizer of the graph gathers.

        Raises:
            GraphError: if there is one.
        """
        graph = self._global_step.graph
        known = dict(graph.get_collection(_GATHERED))
        for variable in variables:
            if variable in known:
                raise GraphError(
                    f"{self._name}: the gradients of {variable.op_name!r} are gathered by "
                    f"{known[variable]!r} already; two optimizers would mix them up. Call "
                    "minimize or apply_gradients once, or give them different variables"
                )
        for variable in variables:
            graph.add_to_collection(_GATHERED, (variable, self._name))

    def _checked(self, gradient: Any, variable: Variable) -> Gradient:
        """Return a gradient that fits, and fails before it is admitted where it does not.

        Raises:
            AttributeValueError: if it is none.
        """
        if isinstance(gradient, IndexedSlices):
            sound = checked_gradient(self._name, gradient, variable)
            assert isinstance(sound, IndexedSlices)
            shape = variable.shape.plain
            values = hr.ensure_shape(sound.values, hr.TensorShape([None]).concatenate(shape[1:]))
            indices = hr.cast(sound.indices, hr.int64)
            rows = hr.shape(variable.value(), out_type=hr.int64)[0]
            with hr.control_dependencies(
                [
                    hr.debugging.assert_non_negative(indices),
                    hr.debugging.assert_less(indices, rows),
                ]
            ):
                return IndexedSlices(values, hr.identity(indices), sound.dense_shape)
        if not isinstance(gradient, Tensor):
            raise AttributeValueError(f"Unknown grad type! Got {shown(gradient)}")
        dense = checked_gradient(self._name, gradient, variable)
        return hr.ensure_shape(dense, variable.shape.plain)

    def _accumulator(
        self, gradient: Gradient, variable: Variable
    ) -> ConditionalAccumulator | SparseConditionalAccumulator:
        sparse = isinstance(gradient, IndexedSlices)
        kind = SparseConditionalAccumulator if sparse else ConditionalAccumulator
        with hr.device(_task_of(variable)):
            return kind(
                variable.dtype,
                shape=variable.shape.plain,
                shared_name=f"{self._name}/{variable.op_name}/grad_accum",
            )


class SyncReplicasOrderError(FailedPreconditionError, ValueError):
    """Something was asked for before ``apply_gradients`` was called."""


def _parts(gradient: Gradient) -> list[Tensor]:
    if isinstance(gradient, IndexedSlices):
        return [gradient.values, gradient.indices]
    return [gradient]


def _pushed(
    accumulator: ConditionalAccumulator | SparseConditionalAccumulator,
    gradient: Gradient,
    number: Tensor,
) -> Operation:
    with hr.device(accumulator.accumulator_ref.op.device):
        if isinstance(accumulator, ConditionalAccumulator):
            return accumulator.place_grad(gradient, number)
        assert isinstance(gradient, IndexedSlices)
        return accumulator.place_grad(
            gradient.indices, gradient.values, gradient.dense_shape, number
        )


def _taken(
    accumulator: ConditionalAccumulator | SparseConditionalAccumulator,
    numbers: Tensor,
    variable: Variable,
) -> Gradient:
    with hr.device(_task_of(variable)):
        return accumulator.take_placed(numbers)


def _after(operations: Sequence[Operation]) -> Tensor:
    with hr.control_dependencies(operations):
        return hr.constant(True)


def _task_of(variable: Variable) -> str:
    """Return the task on which a variable is, as far as the program said."""
    asked = DeviceName.parse(variable.device)
    return str(DeviceName(asked.job, asked.task))


def _operation(built: Any) -> Operation:
    made: Operation = built.op if isinstance(built, Tensor) else built
    return made


def _passing_a_point(number: Tensor) -> Tensor:
    """Let the replica pass a point at which it was admitted, and has brought nothing."""

    def passed(value: Any) -> Any:
        fault_point("admission")
        return value

    made: Tensor = hr.ensure_shape(hr.py_func(passed, [number], hr.int64), ())
    return made


def _at_least_one(value: Any, what: str) -> int:
    count = whole_number(value, what)
    if count < 1:
        raise AttributeValueError(f"{what} must be at least 1, got {count}")
    return count
