"""What all optimizers share: gradients, state per variable, updates, the end of the step."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, final

import headrace as hr
from headrace import DType, Graph, IndexedSlices, Operation, Tensor, Variable
from headrace.errors import AttributeValueError, DTypeError, GraphError, ShapeError, listing
from headrace_train.optimizers.ordering import reads_to_await
from headrace_train.optimizers.slots import Slots

Gradient: TypeAlias = Tensor | IndexedSlices
GradientsAndVariables: TypeAlias = list[tuple[Gradient | None, Variable]]
# A number, a scalar tensor or variable, or a function of no arguments that returns one of these
# and is called each time that updates are built.
Hyperparameter: TypeAlias = float | Tensor | Variable | Callable[[], Any]

_log = logging.getLogger(__name__)


class Optimizer(ABC):
    """Builds the operations that change variables so that a loss falls.

    An optimizer is a way to build a graph: ``minimize`` adds gradients and updates, made of
    ordinary operations, and each run of the operation that it returns is one step of training.

    A variable's ``constraint`` is applied to its new value within the step.

    All updates of one step use gradients from before the step: whatever of the loss and the
    gradients reads a variable does so before the variable is changed. Each write is atomic. Steps
    that run concurrently on the same variables may interleave between the reads and the writes of
    one update.

    A subclass implements ``_apply_dense``, and where it needs them the other methods with one
    leading underscore that say so.
    """

    # Whether the update of a variable is one write, which is atomic as it is.
    _single_write = False

    def __init__(
        self,
        name: str,
        use_locking: bool = False,
        hyperparameters: Mapping[str, Hyperparameter] | None = None,
    ) -> None:
        """Set what every optimizer has.

        Args:
            name: Prefix of what is built; variables of state are named after it.
            use_locking: Whether the whole update of a variable should be one atomic change. That
                holds for updates of a single write; others log that it does not.
            hyperparameters: Numbers, scalar tensors, or functions that return such, by name; a
                subclass gets them as tensors from ``_hyperparameter``.

        Raises:
            AttributeValueError: if the name is empty, or a hyperparameter is none of these.
        """
        if not name:
            raise AttributeValueError("an optimizer needs a name that is not empty")
        self._name = name
        self._slots = Slots(name)
        self._given = dict(hyperparameters or {})
        for label, value in self._given.items():
            if not callable(value):
                self._check_hyperparameter(label, value)
        self._current: dict[str, Any] = {}
        self._losses: dict[Graph, list[Tensor]] = {}
        if use_locking and not self._single_write:
            _log.warning(
                "%s: use_locking=True orders no concurrent steps; each write to a variable is "
                "atomic, but its update is more than one",
                name,
            )

    @final
    @property
    def name(self) -> str:
        """The optimizer's name."""
        return self._name

    # -- what users call

    @final
    def minimize(
        self,
        loss: Any,
        global_step: Variable | None = None,
        var_list: Iterable[Variable] | None = None,
        *,
        grad_loss: Any = None,
        name: str | None = None,
    ) -> Operation:
        """Return an operation that makes one step of training.

        Args:
            loss: What to minimize, floating; the sum of its elements where it has several.
            global_step: An integer variable to increment once all updates are done.
            var_list: The variables to change; all trainable ones of the graph if None.
            grad_loss: [like ``loss``], weights of the loss's elements; ones if None.
            name: Prefix of the operations that apply the gradients.

        Raises:
            GraphError: if there is nothing to change, or no gradient reaches any variable.
            DTypeError: if the loss or a variable is not floating.
        """
        gradients = self.compute_gradients(loss, var_list, grad_loss)
        return self.apply_gradients(gradients, global_step, name)

    @final
    def compute_gradients(
        self,
        loss: Any,
        var_list: Iterable[Variable] | None = None,
        grad_loss: Any = None,
    ) -> GradientsAndVariables:
        """Return pairs of gradient and variable, the first half of ``minimize``.

        Args:
            loss: What to minimize, floating; the sum of its elements where it has several.
            var_list: The variables; all trainable floating ones of the loss's graph if None.
            grad_loss: [like ``loss``], weights of the loss's elements; ones if None.

        Returns:
            A pair for each variable, with None where the loss does not depend on it.

        Raises:
            GraphError: if there are no variables.
            DTypeError: if the loss or a variable is not floating.
        """
        target = hr.convert_to_tensor(loss)
        if not target.dtype.is_floating:
            raise DTypeError(f"a loss must be floating, got {target!r}; convert it with hr.cast")
        if var_list is None:
            variables = [v for v in target.graph.variables if v.trainable and v.dtype.is_floating]
            if not variables:
                raise GraphError(
                    f"{self._name}: the graph has no trainable variables; make some with "
                    "hr.Variable before minimize(), or pass var_list"
                )
        else:
            variables = self._checked_list(var_list)
        weights = None if grad_loss is None else [hr.convert_to_tensor(grad_loss, target.dtype)]
        self._losses.setdefault(target.graph, []).append(target)
        gradients = hr.gradients([target], variables, grad_ys=weights)
        return list(zip(gradients, variables, strict=True))

    @final
    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, Variable]],
        global_step: Variable | None = None,
        name: str | None = None,
    ) -> Operation:
        """Return an operation that changes variables by gradients, the second half of ``minimize``.

        Args:
            grads_and_vars: Pairs as from ``compute_gradients``, possibly with other gradients;
                those without a gradient are passed over.
            global_step: An integer variable to increment once all updates are done.
            name: Prefix of the operations.

        Raises:
            GraphError: if no variable has a gradient, or one is listed twice.
            DTypeError: if a gradient does not have its variable's dtype, or the step counter is
                no integer.
            ShapeError: if a gradient does not fit its variable.
        """
        pairs = list(grads_and_vars)
        if not pairs:
            raise GraphError(f"{self._name}: there are no variables to apply gradients to")
        variables = self._checked_list(v for _, v in pairs)
        with hr.name_scope(name, self._name, [v.handle for v in variables]):
            gradients = {
                variable: self._checked_gradient(gradient, variable)
                for (gradient, _), variable in zip(pairs, variables, strict=True)
                if gradient is not None
            }
            if not gradients:
                raise GraphError(
                    f"{self._name}: no gradient reaches any of the variables "
                    f"{listing(v.op_name for v in variables)}; does the loss depend on them by "
                    "differentiable operations?"
                )
            self._current = {k: v() if callable(v) else v for k, v in self._given.items()}
            for label, value in self._current.items():
                self._check_hyperparameter(label, value)
            return self._apply(gradients, global_step)

    @final
    def get_slot(self, var: Variable, name: str) -> Variable | None:
        """Return the variable of state ``name`` that belongs to ``var``, None where there is none.

        Args:
            var: A variable that this optimizer changes.
            name: One of ``get_slot_names()``.
        """
        return self._slots.get(var, name)

    @final
    def get_slot_names(self) -> list[str]:
        """Return the names of the state that is kept per variable."""
        return self._slots.names()

    @final
    def variables(self) -> list[Variable]:
        """Return the variables of this optimizer's own state in the default graph."""
        return self._slots.variables(hr.get_default_graph())

    # -- what subclasses implement

    def _create_slots(self, variables: Sequence[Variable]) -> None:  # noqa: B027 - a choice
        """Make the state for ``variables`` in ``self._slots``; called before their updates."""

    def _prepare(self, variables: Sequence[Variable]) -> None:  # noqa: B027 - a choice
        """Build what the updates of several variables share; called before them."""

    @abstractmethod
    def _apply_dense(self, gradient: Tensor, variable: Variable) -> Tensor | Operation:
        """Build the update of a variable and return its last operation.

        Called where operations are placed with the variable.
        """

    def _apply_sparse(self, gradient: IndexedSlices, variable: Variable) -> Tensor | Operation:
        """Build the update of a variable from the gradient of some of its rows.

        Rows may be named several times; their gradients add up. The update is that of the dense
        gradient, all other rows of which are zero, unless a subclass knows better.
        """
        return self._apply_dense(hr.convert_to_tensor(gradient), variable)

    def _finish(self, updates: Sequence[Operation]) -> Sequence[Operation]:
        """Return the operations to end the step with; called after all updates were built."""
        return updates

    # -- what subclasses use

    @final
    def _hyperparameter(self, name: str, dtype: DType) -> Tensor:
        """Return a hyperparameter as a scalar tensor of ``dtype``."""
        return as_scalar(self._current[name], dtype)

    @final
    def _complement(self, name: str, dtype: DType) -> Tensor:
        """Return one minus a hyperparameter, computed in full precision where it is a number."""
        value = self._current[name]
        if isinstance(value, int | float):
            return as_scalar(1.0 - value, dtype)
        return 1.0 - as_scalar(value, dtype)

    # -- its own

    def _apply(
        self, gradients: dict[Variable, Gradient], global_step: Variable | None
    ) -> Operation:
        variables = list(gradients)
        self._create_slots(variables)
        self._prepare(variables)
        parts = {
            v: [g.values, g.indices] if isinstance(g, IndexedSlices) else [g]
            for v, g in gradients.items()
        }
        losses = self._losses.get(variables[0].graph, [])
        roots = [tensor for tensors in parts.values() for tensor in tensors] + losses
        awaited = reads_to_await(roots, parts)
        updates = []
        for variable, gradient in gradients.items():
            with (
                hr.control_dependencies(awaited[variable]),
                hr.colocate_with(variable.handle),
                hr.name_scope(f"update_{variable.op_name}"),
            ):
                update = (
                    self._apply_sparse(gradient, variable)
                    if isinstance(gradient, IndexedSlices)
                    else self._apply_dense(gradient, variable)
                )
                if variable.constraint is not None:
                    with hr.control_dependencies([update]):
                        update = variable.assign(variable.constraint(variable.value()))
            updates.append(update.op if isinstance(update, Tensor) else update)
        last = self._finish(updates)
        if global_step is None:
            return hr.group(*last, name="apply")
        counter = self._checked_step(global_step)
        with hr.control_dependencies(last):
            counted: Tensor = counter.assign_add(1, name="count_step")
            return counted.op

    def _checked_list(self, var_list: Iterable[Variable]) -> list[Variable]:
        if isinstance(var_list, Variable):
            raise GraphError("var_list is a list of variables, got a single variable")
        variables = list(var_list)
        if not variables:
            raise GraphError(f"{self._name}: var_list is empty, there is nothing to change")
        seen: set[Variable] = set()
        for variable in variables:
            if not isinstance(variable, Variable):
                raise GraphError(f"{self._name} changes variables, got {variable!r}")
            if variable in seen:
                raise GraphError(f"{self._name}: {variable.op_name!r} is listed twice")
            if variable.graph is not variables[0].graph:
                raise GraphError(
                    f"{self._name}: {variables[0].op_name!r} and {variable.op_name!r} belong to "
                    "different graphs"
                )
            seen.add(variable)
        wrong = [f"{v.op_name} ({v.dtype})" for v in variables if not v.dtype.is_floating]
        if wrong:
            raise DTypeError(
                f"{self._name} changes floating variables only, got {listing(wrong)}; make them "
                "with trainable=False, or leave them out of var_list"
            )
        return variables

    def _checked_gradient(self, gradient: Any, variable: Variable) -> Gradient:
        checked: Gradient
        if isinstance(gradient, IndexedSlices):
            checked = gradient
            if gradient.dense_shape is None:
                whole = hr.shape(variable.value())
                checked = IndexedSlices(gradient.values, gradient.indices, whole)
            shape = gradient.values.shape[1:]
            expected = variable.shape[1:]
            what = "rows of the gradient"
        else:
            checked = hr.convert_to_tensor(gradient, preferred_dtype=variable.dtype)
            shape, expected = checked.shape, variable.shape
            what = "gradient"
        if checked.dtype != variable.dtype:
            raise DTypeError(
                f"{self._name}: the gradient of {variable.op_name!r} is {checked.dtype}, expected "
                f"{variable.dtype}; convert it with hr.cast"
            )
        if not expected.is_compatible_with(shape):
            raise ShapeError(
                f"{self._name}: the {what} of {variable.op_name!r} has shape {shape}, expected "
                f"{expected}"
            )
        return checked

    def _checked_step(self, global_step: Any) -> Variable:
        if not isinstance(global_step, Variable) or not global_step.dtype.is_integer:
            raise DTypeError(
                f"global_step must be an integer variable, got {global_step!r}; make one with "
                "hr.train.get_or_create_global_step()"
            )
        return global_step

    def _check_hyperparameter(self, label: str, value: Any) -> None:
        if isinstance(value, Tensor | Variable):
            fits = value.dtype.is_floating and value.shape.is_compatible_with(())
        else:
            fits = isinstance(value, int | float) or getattr(value, "shape", None) == ()
        if not fits or isinstance(value, bool):
            raise AttributeValueError(
                f"{self._name}: {label} must be a number, a floating scalar tensor, or a function "
                f"that returns one of these, got {value!r}"
            )


def as_scalar(value: Any, dtype: DType) -> Tensor:
    """Return a number, tensor or variable as a tensor of ``dtype``."""
    if isinstance(value, Tensor | Variable):
        scalar: Tensor = hr.cast(value, dtype)
        return scalar
    return hr.convert_to_tensor(float(value), dtype)
