"""The optimizer: one iteration of L-BFGS as an operation, its state in variables."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any, NamedTuple, final

import headrace as hr
from headrace import Operation, Tensor, Variable
from headrace.errors import AttributeValueError, DTypeError, GraphError, listing, shown
from headrace.extend.arguments import real
from headrace_train.optimizers.checks import check_variables, checked_step, flat_sources
from headrace_train.optimizers.lbfgs.direction import History, direction, extended
from headrace_train.optimizers.lbfgs.line_search import Trial, Wolfe, search
from headrace_train.optimizers.lbfgs.objective import Objective
from headrace_train.optimizers.ordering import reads_to_await


class LBFGSStatus(IntEnum):
    """What an L-BFGS optimizer's ``status`` says."""

    RUNNING = 0
    GRADIENT_IS_SMALL = 1
    LOSS_FALLS_NO_MORE = 2
    NO_LOWER_POINT = 3


class _State(NamedTuple):
    """What a step starts from, and what it leaves behind.

    Attributes:
        point: [n], the values of the variables.
        loss: [], there.
        gradient: [n], there.
        history: Of earlier points.
        evaluations: [], how often the loss was evaluated, with its gradient.
        status: [], an ``LBFGSStatus``.
    """

    point: Tensor
    loss: Tensor
    gradient: Tensor
    history: History
    evaluations: Tensor
    status: Tensor

    def flat(self) -> list[Tensor]:
        return [*self[:3], *self.history, *self[4:]]

    @classmethod
    def packed(cls, flat: Iterable[Any]) -> _State:
        point, loss, gradient, steps, changes, scales, evaluations, status = flat
        history = History(steps, changes, scales)
        return cls(point, loss, gradient, history, evaluations, status)


@final
class LBFGSOptimizer:
    """L-BFGS: curvature from the latest steps, and a line search for the strong Wolfe conditions.

    Each run of the operation that ``minimize`` returns is one iteration with its line search, which
    evaluates the loss and its gradient at one or more points. All of it happens in the graph: the
    part of the graph between the variables and the loss is copied and computed at other values of
    the variables. What the step reads or draws besides, such as a batch of data, is the same at
    all points. Operations that the loss waits for without using their outputs, such as updates of
    moving averages, do not run at other points.

    It is a method for deterministic losses: over all data, or large batches. When the gradient is
    small, the loss falls no more, or no lower point is found, ``status`` says so, and further runs
    change nothing until the variables or the loss are changed from elsewhere.

    Example::

        optimizer = hr.train.LBFGSOptimizer()
        step = optimizer.minimize(loss)
        with hr.Session() as session:
            session.run(hr.global_variables_initializer())
            while not session.run(optimizer.status):
                session.run(step)

    References:
        D. Liu and J. Nocedal, On the limited memory BFGS method for large scale optimization,
        Mathematical Programming 45, 1989; J. Nocedal and S. Wright, Numerical Optimization, 2nd
        edition, Algorithms 7.5, 3.5 and 3.6.
    """

    def __init__(
        self,
        history_size: int = 10,
        gradient_tolerance: float = 1e-5,
        loss_tolerance: float = 2.2e-9,
        max_evaluations: int = 20,
        sufficient_decrease: float = 1e-4,
        curvature: float = 0.9,
        reuse_evaluation: bool | None = None,
        name: str = "LBFGS",
    ) -> None:
        """Set what the iterations do.

        Args:
            history_size: How many earlier steps tell of the curvature, >= 1.
            gradient_tolerance: The end is reached where no element of the gradient is larger.
            loss_tolerance: The end is reached where the loss falls by no more in an iteration,
                relative to the larger of its absolute values and 1.
            max_evaluations: How many points a line search tries at most, >= 1.
            sufficient_decrease: The first Wolfe condition, c1: the loss falls by this share, at
                least, of what the slope promises.
            curvature: The second, c2: the slope falls to this share, at least; between
                ``sufficient_decrease`` and 1.
            reuse_evaluation: Whether an iteration may start from what the last one evaluated where
                it ended, if the variables are still the same. Right where the loss is the same
                function in every step. If None, where it depends on nothing but the variables and
                constants; give True where the same data are fed each time.
            name: Prefix of what is built.

        Raises:
            AttributeValueError: if one of these is out of range.
        """
        for label, given in (
            ("history_size", history_size),
            ("gradient_tolerance", gradient_tolerance),
            ("loss_tolerance", loss_tolerance),
            ("max_evaluations", max_evaluations),
            ("sufficient_decrease", sufficient_decrease),
            ("curvature", curvature),
        ):
            real(given, label)
        _check(history_size >= 1, "history_size", ">= 1", history_size)
        _check(gradient_tolerance >= 0, "gradient_tolerance", ">= 0", gradient_tolerance)
        _check(loss_tolerance >= 0, "loss_tolerance", ">= 0", loss_tolerance)
        _check(max_evaluations >= 1, "max_evaluations", ">= 1", max_evaluations)
        _check(0 < sufficient_decrease < 1, "sufficient_decrease", "in (0, 1)", sufficient_decrease)
        ordered = sufficient_decrease < curvature < 1
        _check(ordered, "curvature", f"in ({sufficient_decrease}, 1)", curvature)
        if not name:
            raise AttributeValueError("an optimizer needs a name that is not empty")
        self._history_size = history_size
        self._gradient_tolerance = gradient_tolerance
        self._loss_tolerance = loss_tolerance
        self._wolfe = Wolfe(sufficient_decrease, curvature, max_evaluations)
        self._reuse = reuse_evaluation
        self._name = name
        self._kept: list[Variable] = []

    @property
    def name(self) -> str:
        """The optimizer's name."""
        return self._name

    def variables(self) -> list[Variable]:
        """Return the variables of this optimizer's own state."""
        return list(self._kept)

    @property
    def status(self) -> Variable:
        """An int32 variable, an ``LBFGSStatus``: 0 while the loss is being lowered."""
        return self._state("status")

    @property
    def evaluations(self) -> Variable:
        """An int64 variable: how often the loss was evaluated, each time with its gradient."""
        return self._state("evaluations")

    @property
    def loss(self) -> Variable:
        """A variable: the loss where the last iteration ended."""
        return self._state("loss")

    def _state(self, name: str) -> Variable:
        for variable in self._kept:
            if variable.op_name.rpartition("/")[2] == name:
                return variable
        raise GraphError(f"{self._name}: its state is made by minimize(), which was not called yet")

    def minimize(
        self,
        loss: Any,
        global_step: Variable | None = None,
        var_list: Any = None,
        *,
        name: str | None = None,
    ) -> Operation:
        """Return an operation that makes one iteration.

        Args:
            loss: What to minimize, floating, or a function that builds it; the sum of its elements
                where it has several.
            global_step: An integer variable to increment once the variables are changed.
            var_list: The variables to change, in lists however nested; all trainable ones of the
                graph if None.
            name: Prefix of the operations.

        Raises:
            GraphError: if there is nothing to change, a variable has a constraint, the optimizer
                minimizes a loss already, or the loss cannot be computed at several points:
                something with an effect, a gradient of its own, or a condition that reads a
                variable lies in between.
            DTypeError: if the loss is not floating, the variables are not all float32 or all
                float64, or ``global_step`` is no integer variable.
            ShapeError: if the shape of a variable is not known.
        """
        if self._kept:
            raise GraphError(f"{self._name} minimizes a loss already; make one optimizer for each")
        target = hr.convert_to_tensor(loss() if callable(loss) else loss)
        if not target.dtype.is_floating:
            raise DTypeError(
                f"a loss must be floating, got {shown(target)}; convert it with hr.cast"
            )
        variables = self._chosen(target, var_list)
        counter = None if global_step is None else checked_step(global_step)
        objective = Objective(target, variables, self._name)
        reuse = objective.is_fixed if self._reuse is None else self._reuse
        with hr.name_scope(name, self._name):
            return self._iteration(objective, target, reuse, counter)

    def _chosen(self, loss: Tensor, var_list: Any) -> list[Variable]:
        if var_list is None:
            found: list[Any] = [
                v for v in loss.graph.variables if v.trainable and v.dtype.is_floating
            ]
            if not found:
                raise GraphError(
                    f"{self._name}: the graph has no trainable variables; make some with "
                    "hr.Variable before minimize(), or pass var_list"
                )
        else:
            found = list(flat_sources(self._name, var_list))
        check_variables(self._name, found)
        constrained = [v.op_name for v in found if v.constraint is not None]
        if constrained:
            raise GraphError(
                f"{self._name} has no regard for constraints, and {listing(constrained)} has one; "
                "use another optimizer, or compute the variable from one that is free"
            )
        return found

    # -- what is built

    def _iteration(
        self, objective: Objective, loss: Tensor, reuse: bool, global_step: Variable | None
    ) -> Operation:
        variables = objective.variables
        kept = self._make_state(objective)
        point = objective.packed([v.value() for v in variables])
        last = _State.packed([v.value() for v in kept])
        same = hr.reduce_all(hr.equal(point, last.point)) if reuse else hr.constant(False)
        is_over = hr.logical_and(same, last.status > LBFGSStatus.RUNNING)

        def evaluated() -> list[Tensor]:
            return [*objective.at(point), last.evaluations + 1]

        def known() -> list[Tensor]:
            return [last.loss, last.gradient, last.evaluations]

        def proceed() -> list[Tensor]:
            loss, gradient, evaluations = hr.cond(same, known, evaluated) if reuse else evaluated()
            begin = last._replace(
                point=point, loss=loss, gradient=gradient, evaluations=evaluations
            )
            # Where the loss is no number, nothing says where to go.
            status = _first_of(
                (hr.logical_not(hr.is_finite(loss)), LBFGSStatus.NO_LOWER_POINT),
                (self._is_small(gradient), LBFGSStatus.GRADIENT_IS_SMALL),
            )
            flat: list[Tensor] = hr.cond(
                status > LBFGSStatus.RUNNING,
                lambda: begin._replace(status=status).flat(),
                lambda: self._stepped(objective, begin).flat(),
            )
            return flat

        flat = hr.cond(is_over, lambda: [t + 0 for t in last.flat()], proceed)
        state = _State.packed(flat)
        awaited = reads_to_await([*flat, loss], {v: [state.point] for v in variables})
        changes = []
        pieces = objective.unpacked(state.point)
        for variable, piece in zip(variables, pieces, strict=True):
            with hr.control_dependencies(awaited[variable]), hr.colocate_with(variable.handle):
                changes.append(variable.assign(piece).op)
        changes += [v.assign(t).op for v, t in zip(kept, state.flat(), strict=True)]
        if global_step is None:
            return hr.group(*changes, name="apply")
        with hr.control_dependencies(changes):
            counted: Tensor = global_step.assign_add(1, name="count_step")
            return counted.op

    def _make_state(self, objective: Objective) -> list[Variable]:
        n, m, dtype = objective.size, self._history_size, objective.dtype
        # A point that no variables are at: the first step evaluates.
        starts = {
            "point": hr.fill([n], hr.constant(float("nan"), dtype)),
            "loss": hr.constant(float("nan"), dtype),
            "gradient": hr.zeros([n], dtype),
            "steps": hr.zeros([m, n], dtype),
            "changes": hr.zeros([m, n], dtype),
            "scales": hr.zeros([m], dtype),
            "evaluations": hr.constant(0, hr.int64),
            "status": hr.constant(0, hr.int32),
        }
        self._kept = [Variable(start, trainable=False, name=name) for name, start in starts.items()]
        return self._kept

    def _is_small(self, gradient: Tensor) -> Tensor:
        small: Tensor = hr.reduce_max(hr.abs(gradient)) <= self._gradient_tolerance
        return small

    def _stepped(self, objective: Objective, begin: _State) -> _State:
        """Return the state after one iteration from a point whose gradient is not small."""
        gradient = begin.gradient
        guess = direction(gradient, begin.history)
        slope = hr.reduce_sum(guess * gradient)
        falls = hr.logical_and(slope < 0, hr.is_finite(slope))
        along = hr.where(falls, guess, -gradient)
        history = History(
            *(
                hr.where(falls, old, new)
                for old, new in zip(begin.history, History.empty(begin.history), strict=True)
            )
        )
        slope = hr.reduce_sum(along * gradient)
        start = Trial(hr.zeros_like(begin.loss), begin.loss, slope, gradient)
        is_first = hr.equal(history.scales[-1], 0)
        length = hr.rsqrt(hr.reduce_sum(along * along))
        first = hr.where(is_first, hr.minimum(length, hr.ones_like(length)), hr.ones_like(length))
        end, count = search(objective.at, begin.point, along, start, first, self._wolfe)
        step = end.length * along
        return self._judged(begin, history, end, step, count)

    def _judged(
        self, begin: _State, history: History, end: Trial, step: Tensor, count: Tensor
    ) -> _State:
        """Return the state after a line search, with what it means for further iterations."""
        moved = end.length > 0
        scale = hr.maximum(hr.maximum(hr.abs(begin.loss), hr.abs(end.loss)), 1.0)
        stalls = begin.loss - end.loss <= self._loss_tolerance * scale
        # A history that led nowhere is dropped; without one there is nothing else to try.
        gives_up = hr.logical_and(hr.logical_not(moved), hr.equal(history.scales[-1], 0))
        after = extended(history, step, end.gradient - begin.gradient)
        empty = History.empty(history)
        status = _first_of(
            (self._is_small(end.gradient), LBFGSStatus.GRADIENT_IS_SMALL),
            (gives_up, LBFGSStatus.NO_LOWER_POINT),
            (hr.logical_and(moved, stalls), LBFGSStatus.LOSS_FALLS_NO_MORE),
        )
        return _State(
            begin.point + step,
            end.loss,
            end.gradient,
            History(*(hr.where(moved, new, old) for new, old in zip(after, empty, strict=True))),
            begin.evaluations + hr.cast(count, hr.int64),
            status,
        )


def _first_of(*cases: tuple[Tensor, LBFGSStatus]) -> Tensor:
    found: Tensor = hr.constant(int(LBFGSStatus.RUNNING))
    for holds, status in reversed(cases):
        found = hr.where(holds, hr.constant(int(status)), found)
    return found


def _check(holds: bool, label: str, expected: str, value: Any) -> None:
    if isinstance(value, bool) or not holds:
        raise AttributeValueError(f"LBFGSOptimizer: {label} must be {expected}, got {shown(value)}")
