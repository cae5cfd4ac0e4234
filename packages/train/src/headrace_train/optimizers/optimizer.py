"""The base class of optimizers: gradients, slots, updates, the end of the step."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias, final

import headrace as hr
from headrace import DType, Graph, IndexedSlices, Operation, Tensor, Variable
from headrace.errors import (
    ArgumentTypeError,
    AttributeValueError,
    GraphError,
    UnimplementedError,
    listing,
    shown,
)
from headrace.extend.arguments import items, whole
from headrace_train.optimizers.checks import (
    Gradient,
    check_dtypes,
    check_loss,
    check_variables,
    checked_gradient,
    checked_step,
    flat_sources,
)
from headrace_train.optimizers.hyperparameters import Hyperparameter, Hyperparameters
from headrace_train.optimizers.ordering import reads_to_await
from headrace_train.optimizers.slots import Slots, ones_of, zeros_of

GradientsAndVariables: TypeAlias = list[tuple[Gradient | None, Any]]

_log = logging.getLogger("headrace.train")


class Optimizer:
    """Builds the operations that change variables so that a loss falls.

    An optimizer is a way to build a graph: ``minimize`` adds gradients and updates, made of
    ordinary operations, and each run of the operation that it returns is one step of training.

    A variable's ``constraint`` is applied to its new value within the step.

    All updates of one step use gradients from before the step: whatever of the loss and the
    gradients reads a variable does so before the variable is changed. Each write is atomic. Steps
    that run concurrently on the same variables may interleave between the reads and the writes of
    one update.

    Optimizers of one's own are subclasses. One whose update goes element by element is best made
    from ``ElementwiseOptimizer``, which needs one method. Others implement methods of this class,
    which have the names and arguments of TensorFlow's: ``_apply_dense``, and where they need them
    ``_create_slots``, ``_prepare``, ``_apply_sparse`` and ``_finish``.
    """

    # Values of gate_gradients.
    GATE_NONE = 0
    GATE_OP = 1
    GATE_GRAPH = 2

    # Whether the update of a variable is one write, which is atomic as it is.
    _single_write = False

    def __init__(
        self,
        use_locking: bool,
        name: str,
        hyperparameters: Mapping[str, Hyperparameter] | None = None,
    ) -> None:
        """Set what every optimizer has.

        Args:
            use_locking: Whether the whole update of a variable should be one atomic change. That
                holds for updates of a single write; others log that it does not.
            name: Prefix of what is built; variables of state are named after it.
            hyperparameters: Numbers, scalar tensors, or functions that return such, by name; a
                subclass gets them as tensors from ``_hyperparameter``.

        Raises:
            AttributeValueError: if the name is empty, or a hyperparameter is none of these.
        """
        if not name or not isinstance(name, str):
            raise AttributeValueError(
                f"an optimizer needs a name that is not empty, got {shown(name)}; the arguments of "
                "Optimizer are use_locking and name, in this order"
            )
        self._name = name
        self._use_locking = use_locking
        self._state = Slots()
        self._hyperparameters = Hyperparameters(name, hyperparameters)
        self._losses: dict[Graph, list[Tensor]] = {}
        if use_locking and not self._single_write:
            _log.warning(
                "%s: use_locking=True orders no concurrent steps; each write to a variable is "
                "atomic, but its update is more than one",
                name,
            )

    # -- what users call

    @property
    def name(self) -> str:
        """The optimizer's name."""
        return self._name

    def get_name(self) -> str:
        """Return the optimizer's name."""
        return self._name

    def minimize(
        self,
        loss: Any,
        global_step: Variable | None = None,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: Any = None,
        *,
        memory_budget: Any = None,
    ) -> Operation:
        """Return an operation that makes one step of training.

        Args:
            loss: What to minimize, floating; the sum of its elements where it has several.
            global_step: An integer variable to increment once all updates are done.
            var_list: The variables to change; all trainable ones of the graph if None.
            gate_gradients: See ``compute_gradients``.
            aggregation_method: See ``compute_gradients``.
            colocate_gradients_with_ops: See ``compute_gradients``.
            name: Name of the operation, and prefix of those that apply the gradients.
            grad_loss: [like ``loss``], weights of the loss's elements; ones if None.
            memory_budget: As for ``hr.gradients``: how much of the forward pass to keep.

        Raises:
            GraphError: if there is nothing to change, or no gradient reaches any variable.
            DTypeError: if the loss or a variable that has a gradient is not floating.
        """
        # Subclasses of programs written for TensorFlow do not know the argument.
        relief = {} if memory_budget is None else {"memory_budget": memory_budget}
        gradients = self.compute_gradients(
            loss,
            var_list=var_list,
            gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            grad_loss=grad_loss,
            **relief,
        )
        return self.apply_gradients(gradients, global_step=global_step, name=name)

    def compute_gradients(
        self,
        loss: Any,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
        *,
        memory_budget: Any = None,
    ) -> GradientsAndVariables:
        """Return pairs of gradient and variable, the first half of ``minimize``.

        Args:
            loss: What to minimize, floating; the sum of its elements where it has several. Or a
                function of no arguments that builds and returns it.
            var_list: The variables, in lists however nested; all trainable ones of the loss's
                graph if None. Tensors have gradients, too, but cannot be changed.
            gate_gradients: ``GATE_GRAPH`` to let no gradient be used before all are there.
                ``GATE_OP``, which TensorFlow has so that updates come after reads, is the same as
                ``GATE_NONE``: they do in any case.
            aggregation_method: One of ``hr.AggregationMethod``; see ``hr.gradients``.
            colocate_gradients_with_ops: Whether to place each gradient on the device of the
                operation that it differentiates.
            grad_loss: [like ``loss``], weights of the loss's elements; ones if None.
            memory_budget: As for ``hr.gradients``: how much of the forward pass to keep.

        Returns:
            A pair for each variable, with None where the loss does not depend on it.

        Raises:
            GraphError: if there are no variables.
            DTypeError: if the loss or a variable that has a gradient is not floating.
            AttributeValueError: if ``gate_gradients`` has another value.
        """
        if whole(gate_gradients, "gate_gradients") not in (
            self.GATE_NONE,
            self.GATE_OP,
            self.GATE_GRAPH,
        ):
            raise AttributeValueError(
                f"{self._name}: gate_gradients must be Optimizer.GATE_NONE, GATE_OP or GATE_GRAPH, "
                f"got {shown(gate_gradients)}"
            )
        target = hr.convert_to_tensor(loss() if callable(loss) else loss)
        valid = self._valid_dtypes()
        check_loss(self._name, target, valid)
        weights = None
        if grad_loss is not None:
            weights = hr.convert_to_tensor(grad_loss, preferred_dtype=target.dtype)
            check_loss(self._name, weights, valid, "grad_loss")
        if var_list is None:
            keys = (hr.GraphKeys.TRAINABLE_VARIABLES, hr.GraphKeys.TRAINABLE_RESOURCE_VARIABLES)
            listed = [v for key in keys for v in target.graph.get_collection(key)]
            sources: list[Any] = list(dict.fromkeys(listed))
            if not sources:
                raise GraphError(
                    f"{self._name}: the graph has no trainable variables; make some with "
                    "hr.Variable before minimize(), or pass var_list"
                )
        else:
            sources = flat_sources(self._name, var_list)
        self._losses.setdefault(target.graph, []).append(target)
        gradients = hr.gradients(
            [target],
            sources,
            grad_ys=None if weights is None else [weights],
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            memory_budget=memory_budget,
        )
        if gate_gradients == self.GATE_GRAPH and any(g is not None for g in gradients):
            gradients = hr.tuple(gradients)
        pairs = list(zip(gradients, sources, strict=True))
        if callable(loss) and var_list is None:
            # Those that the function reads, as a tape would see them.
            pairs = [(gradient, variable) for gradient, variable in pairs if gradient is not None]
        check_dtypes(self._name, [v for g, v in pairs if g is not None], valid)
        return pairs

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
            name: Name of the operation, and prefix of those that it consists of.

        Raises:
            GraphError: if no variable has a gradient, or one is listed twice.
            UnimplementedError: if a tensor is to be changed.
            DTypeError: if a gradient does not have its variable's dtype, or the step counter is
                no integer.
            ShapeError: if a gradient does not fit its variable.
        """
        pairs = items(grads_and_vars, "grads_and_vars")
        if not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
            raise ArgumentTypeError(
                "grads_and_vars must hold pairs of a gradient and a variable, as compute_gradients "
                f"returns them, got {shown(grads_and_vars)}"
            )
        if not pairs:
            raise GraphError(f"{self._name}: there are no variables to apply gradients to")
        check_variables(self._name, [v for _, v in pairs])
        variables = [v for g, v in pairs if g is not None]
        if not variables:
            raise GraphError(
                f"{self._name}: no gradient reaches any of the variables "
                f"{listing(v.op_name for _, v in pairs)}; does the loss depend on them by "
                "differentiable operations?"
            )
        check_dtypes(self._name, variables, self._valid_dtypes())
        counter = None if global_step is None else checked_step(global_step, whole=False)
        self._hyperparameters.refresh()
        self._create_slots(variables)
        with hr.name_scope(name, self._name, [v.handle for v in variables]) as scope:
            gradients = {v: checked_gradient(self._name, g, v) for g, v in pairs if g is not None}
            self._prepare()
            updates = self._updates(gradients)
            if counter is None:
                step = _operation(self._finish(updates, scope))
            else:
                last = self._finish(updates, "update")
                with hr.control_dependencies([last]), hr.colocate_with(counter.handle):
                    step = counter.assign_add(1, name=scope).op
        hr.add_to_collection(hr.GraphKeys.TRAIN_OP, step)
        return step

    @contextmanager
    def apart_from_losses(self, graph: Graph) -> Iterator[None]:
        """Let updates that are built in the block not wait for what losses read.

        For gradients that come from other steps than the updates.

        Args:
            graph: The graph of the losses.
        """
        losses = self._losses.pop(graph, [])
        try:
            yield
        finally:
            self._losses[graph] = losses + self._losses.get(graph, [])

    def get_slot(self, var: Variable, name: str) -> Variable | None:
        """Return the variable of state ``name`` that belongs to ``var``, None where there is none.

        Args:
            var: A variable that this optimizer changes.
            name: One of ``get_slot_names()``.
        """
        return self._state.get(var, name)

    def get_slot_names(self) -> list[str]:
        """Return the names of the state that is kept per variable."""
        return self._state.names()

    def variables(self) -> list[Variable]:
        """Return the variables of this optimizer's own state in the default graph."""
        return self._state.variables(hr.get_default_graph())

    def shared_state(self) -> dict[str, Variable]:
        """Return what it keeps once for the default graph, such as powers of rates, by name."""
        return self._state.all_shared(hr.get_default_graph())

    # -- what subclasses implement

    def _valid_dtypes(self) -> set[DType]:
        """Return the dtypes that losses, and variables that have a gradient, may have."""
        return {hr.float16, hr.bfloat16, hr.float32, hr.float64}

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        """Make the state for ``var_list`` with ``_zeros_slot`` and its like; called first."""

    def _prepare(self) -> None:
        """Build what the updates of several variables share; called before them."""

    def _apply_dense(self, grad: Tensor, var: Variable) -> Tensor | Operation:
        """Build the update of a variable and return its last operation.

        Called where operations are placed with the variable. TensorFlow's name of it for the kind
        of variable that Headrace has, ``_resource_apply_dense``, will do as well.
        """
        return self._resource_apply_dense(grad, var)

    def _resource_apply_dense(self, grad: Tensor, handle: Variable) -> Tensor | Operation:
        raise UnimplementedError(
            f"{type(self).__name__} has no _apply_dense(grad, var), which builds the update of a "
            "variable"
        )

    def _apply_sparse(self, grad: IndexedSlices, var: Variable) -> Tensor | Operation:
        """Build the update of a variable from the gradient of some of its rows, each named once.

        Without it the update is that of the dense gradient, all other rows of which are zero.
        """
        return self._resource_apply_sparse(grad.values, var, grad.indices)

    def _resource_apply_sparse(
        self, grad: Tensor, handle: Variable, indices: Tensor
    ) -> Tensor | Operation:
        whole = IndexedSlices(grad, indices, hr.shape(handle.value()))
        return self._apply_dense(hr.convert_to_tensor(whole), handle)

    def _apply_sparse_duplicate_indices(
        self, grad: IndexedSlices, var: Variable
    ) -> Tensor | Operation:
        """Build the update of a variable from rows that may be named several times.

        The gradients of a row add up. Without it, ``_apply_sparse`` gets their sums.
        """
        methods = ("_apply_sparse", "_resource_apply_sparse")
        if all(getattr(type(self), name) is getattr(Optimizer, name) for name in methods):
            return self._apply_dense(hr.convert_to_tensor(grad), var)
        rows, entries = hr.unique(grad.indices)
        summed = hr.unsorted_segment_sum(grad.values, entries, hr.size(rows))
        return self._apply_sparse(IndexedSlices(summed, rows, grad.dense_shape), var)

    def _finish(self, update_ops: Sequence[Operation], name_scope: str) -> Tensor | Operation:
        """Return the operation that ends the step; called after all updates were built.

        Args:
            update_ops: The last operation of each update.
            name_scope: Name of the operation to return.
        """
        return hr.group(*update_ops, name=name_scope)

    # -- what subclasses use

    @final
    def _hyperparameter(self, name: str, dtype: DType) -> Tensor:
        """Return a hyperparameter as a scalar tensor of ``dtype``."""
        return self._hyperparameters.tensor(name, dtype)

    @final
    def _zeros_slot(self, var: Variable, slot_name: str, op_name: str) -> Variable:
        """Return a slot that starts as zeros like its variable, made where there is none yet.

        Args:
            var: The variable to which it belongs.
            slot_name: What ``get_slot`` knows it by.
            op_name: Follows the variable's name in that of the slot, ``W/Adam``; use the name of
                the optimizer.
        """
        return self._state.make(var, slot_name, op_name, lambda: zeros_of(var))

    @final
    def _filled_slot(
        self, var: Variable, slot_name: str, hyperparameter: str, op_name: str | None = None
    ) -> Variable:
        """Return a slot all of whose elements start as a hyperparameter."""

        def start() -> Tensor:
            return ones_of(var) * self._hyperparameters.start(hyperparameter, var.dtype)

        return self._state.make(var, slot_name, op_name or self._name, start)

    @final
    def _get_or_make_slot(self, var: Variable, val: Any, slot_name: str, op_name: str) -> Variable:
        """Return a slot that starts as ``val``, a tensor or a function that builds one."""
        return self._state.make(var, slot_name, op_name, val if callable(val) else lambda: val)

    @final
    def _get_or_make_slot_with_initializer(
        self,
        var: Variable,
        initializer: Any,
        shape: Any,
        dtype: Any,
        slot_name: str,
        op_name: str,
    ) -> Variable:
        """Return a slot that starts as what an initializer makes of a shape and a dtype."""

        def start() -> Tensor:
            made = initializer(shape, dtype=dtype) if callable(initializer) else initializer
            return hr.convert_to_tensor(made)

        return self._state.make(var, slot_name, op_name, start)

    @final
    def _slot_dict(self, slot_name: str) -> dict[Variable, Variable]:
        """Return the slots of one name by variable; what is added is kept."""
        return self._state.by_variable(slot_name)

    @final
    def _create_non_slot_variable(
        self, initial_value: Any, name: str, colocate_with: Variable
    ) -> Variable:
        """Return a variable of state that the whole graph shares, made where there is none yet.

        Args:
            initial_value: A value, or a function that builds one.
            name: Its name.
            colocate_with: The variable beside which it lives.
        """
        return self._state.shared(colocate_with, name, initial_value)

    @final
    def _get_non_slot_variable(self, name: str, graph: Graph | None = None) -> Variable | None:
        """Return what ``_create_non_slot_variable`` made for a graph, None where there is none."""
        return self._state.get_shared(name, graph or hr.get_default_graph())

    @final
    def _call_if_callable(self, param: Any) -> Any:
        """Return ``param``, or what it returns where it is a function."""
        return param() if callable(param) else param

    # -- its own

    def _updates(self, gradients: Mapping[Variable, Gradient]) -> list[Operation]:
        parts = {
            v: [g.values, g.indices] if isinstance(g, IndexedSlices) else [g]
            for v, g in gradients.items()
        }
        losses = self._losses.get(next(iter(gradients)).graph, [])
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
                    self._apply_sparse_duplicate_indices(gradient, variable)
                    if isinstance(gradient, IndexedSlices)
                    else self._apply_dense(gradient, variable)
                )
                if variable.constraint is not None:
                    with hr.control_dependencies([update]):
                        update = variable.assign(variable.constraint(variable.value()))
            updates.append(_operation(update))
        return updates


def _operation(update: Tensor | Operation) -> Operation:
    return update.op if isinstance(update, Tensor) else update
