"""The base class of layers: variables under a scope of their own, made on the first call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

import headrace as hr
from headrace.errors import (
    AttributeValueError,
    DTypeError,
    GraphError,
    ShapeError,
    shown,
)
from headrace.extend import DType, Operation, Tensor
from headrace.extend.graphs import flatten, get_default_graph, pack
from headrace.extend.ops import as_dtype
from headrace_train.layers.arguments import initializer as find_initializer
from headrace_train.layers.calls import Calls, shapes_of
from headrace_train.layers.graphs import as_input, collect, depends, session_for
from headrace_train.layers.input_spec import InputSpec, check_inputs
from headrace_train.layers.naming import names_of

# The argument ``training`` of the layer that is being called, for layers inside of it.
_TRAINING: ContextVar[Any] = ContextVar("headrace_layer_training", default=None)


class Layer(hr.Module):
    """Variables, and a function of tensors that uses them.

    The first call makes the variables: ``build`` with ``add_weight``. Each call then applies
    ``call``. Variables stand in a variable scope of the layer, whose name is that of its class and
    a number where it is taken, so that ``reuse`` and checkpoints work as with ``get_variable``.

    Subclasses define ``build``, which ends with ``self.built = True``, and ``call``::

        class Scale(hr.layers.Layer):
            def build(self, input_shape):
                self.factor = self.add_weight("factor", input_shape[-1:], initializer="ones")
                self.built = True

            def call(self, inputs):
                return inputs * self.factor

    Attributes:
        built: Whether the variables are made.
        stateful: Whether updates are part of inference, too.
    """

    def __init__(
        self, trainable: bool = True, name: Any = None, dtype: Any = None, **kwargs: Any
    ) -> None:
        """Name the layer.

        Args:
            trainable: Whether optimizers change its variables by default.
            name: Its name; that of the class with a number if None. Layers with one name get
                variable scopes with numbers.
            dtype: The dtype of its variables; that of the first input if None.
            **kwargs: ``activity_regularizer``, a function of each output; its result, divided by
                the size of the first axis, is added to the losses of the layer.
        """
        scope, reuse = kwargs.pop("_scope", None), kwargs.pop("_reuse", None)
        self._activity_regularizer = kwargs.pop("activity_regularizer", None)
        if kwargs:
            raise TypeError(
                f"{type(self).__name__} takes no argument {', '.join(sorted(kwargs))}; all layers "
                "take trainable, name, dtype and activity_regularizer"
            )
        self.built = False
        self.stateful = False
        self._trainable = bool(trainable)
        self._dtype = None if dtype is None else as_dtype(dtype)
        self._input_spec: Any = None
        self._trainable_weights: list[Any] = []
        self._non_trainable_weights: list[Any] = []
        self._updates: list[Operation] = []
        # Each with whether it depends on the inputs of a call.
        self._losses: list[tuple[Tensor, bool]] = []
        self._graph = get_default_graph()
        self._name, self._base_name = names_of(self, name)
        self._calls = Calls(self._name)
        self._reuse = reuse
        self._scope: Any = None
        if scope:
            with hr.variable_scope(scope) as opened:
                self._scope = opened
        self._current_scope: Any = None

    # -- what subclasses define

    def build(self, input_shape: Any) -> None:
        """Make the variables; called before the first ``call``.

        Args:
            input_shape: The static shape of the input; a structure of them for several inputs.
        """
        del input_shape
        self.built = True

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the outputs: a tensor, or a structure of them.

        Args:
            inputs: A tensor, or a structure of them.
            *args: What else was given to the call of the layer.
            **kwargs: The same by name.
        """
        del args, kwargs
        return inputs

    def compute_output_shape(self, input_shape: Any) -> hr.TensorShape:
        """Return the static shape of the output for one of the input.

        Args:
            input_shape: The shape of the input.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define compute_output_shape")

    # -- calling

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Apply the layer; the first call makes its variables.

        Args:
            inputs: A tensor, array or number, or a structure of them.
            *args: Further arguments of ``call``.
            **kwargs: The same by name; ``scope`` is a variable scope to use, in the first call.

        Returns:
            What ``call`` returns.

        Raises:
            ShapeError: if the inputs do not fit the layer.
            GraphError: if ``call`` returns None.
        """
        self._open_scope(kwargs.pop("scope", None))
        reuse = True if self.built else self._reuse
        with hr.variable_scope(self._scope, reuse=reuse, auxiliary_name_scope=False) as scope:
            self._current_scope = scope
            leaves = [as_input(leaf) for leaf in flatten(inputs, composites=False)]
            tensors = pack(inputs, leaves, composites=False)
            check_inputs(self._input_spec, tensors, self._name)
            with hr.name_scope(scope.original_name_scope):
                self._build_once(tensors)
                parameters = inspect.signature(self.call).parameters
                if "scope" in parameters:
                    kwargs["scope"] = scope
                with self._training(parameters, args, kwargs):
                    outputs = self.call(tensors, *args, **kwargs)
                if outputs is None:
                    raise GraphError(
                        f"layer {self._name!r}: call returned None; return a tensor, or a list of "
                        "tensors"
                    )
                self._regularize_activity(outputs)
        self._calls.add(tensors, outputs)
        collect(hr.GraphKeys.UPDATE_OPS, self.updates)
        return outputs

    def apply(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Apply the layer, as calling it does."""
        return self(inputs, *args, **kwargs)

    def _build_once(self, inputs: Any) -> None:
        if self.built:
            return
        leaves = flatten(inputs, composites=False)
        if self._dtype is None and leaves:
            self._dtype = leaves[0].dtype
        self.build(shapes_of(inputs))
        self.built = True

    @contextmanager
    def _training(
        self, parameters: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Iterator[None]:
        """Give ``training`` on to layers inside, and take it from the one around."""
        value = None
        if "training" in parameters:
            place = list(parameters).index("training") - 1
            if "training" in kwargs:
                value = kwargs["training"]
            elif 0 <= place < len(args):
                value = args[place]
            elif _TRAINING.get() is not None:
                value = kwargs["training"] = _TRAINING.get()
        token = _TRAINING.set(_TRAINING.get() if value is None else value)
        try:
            yield
        finally:
            _TRAINING.reset(token)

    def _regularize_activity(self, outputs: Any) -> None:
        if self._activity_regularizer is None:
            return
        with hr.name_scope("ActivityRegularizer"):
            for output in flatten(outputs):
                loss = hr.convert_to_tensor(self._activity_regularizer(output))
                count = hr.cast(hr.shape(output)[0], loss.dtype)
                self.add_loss(hr.truediv(loss, count), inputs=True)

    # -- scopes

    def _open_scope(self, scope: Any) -> None:
        """Open the variable scope of the layer once; its name is what was asked for, or free."""
        if self._scope is not None:
            return
        if self._reuse and scope is None:
            scope = self._base_name
        with hr.variable_scope(scope, default_name=self._base_name) as opened:
            self._scope = opened

    @property
    def scope_name(self) -> str:
        """The name of the layer's variable scope.

        Raises:
            GraphError: before the first call.
        """
        if self._scope is None:
            raise GraphError(
                f"layer {self._name!r} has no scope yet: its first call opens it; call the layer "
                "before you ask for scope_name"
            )
        return str(self._scope.name)

    # -- variables

    def add_weight(
        self,
        name: str,
        shape: Any,
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Callable[[Any], Any] | None = None,
        trainable: bool | None = None,
        constraint: Callable[[Tensor], Any] | None = None,
        use_resource: bool | None = None,
        synchronization: Any = None,
        aggregation: Any = None,
        partitioner: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Make a variable of the layer, or find it where the layer reuses.

        Args:
            name: Its name in the scope of the layer.
            shape: Its shape; that of a scalar if None.
            dtype: Its dtype; that of the layer if None, else float32.
            initializer: As for ``get_variable``, or a name in ``headrace.initializers``.
            regularizer: A function of the variable; its result is added to the losses of the
                layer, once for a variable.
            trainable: Whether optimizers change it by default; never where the layer is not
                trainable.
            constraint: What optimizers apply to it after each change.
            use_resource: Ignored.
            synchronization: Ignored.
            aggregation: Ignored.
            partitioner: As for ``get_variable``.
            **kwargs: ``experimental_autocast`` is ignored.

        Returns:
            The variable, or the partitioned variable.
        """
        kwargs.pop("experimental_autocast", None)
        if kwargs:
            raise TypeError(f"add_weight takes no argument {', '.join(sorted(kwargs))}")
        kind = as_dtype(dtype) if dtype is not None else self._dtype or hr.float32
        if self._dtype is None:
            self._dtype = kind
        self._open_scope(None)
        existing = hr.global_variables()
        wanted = (trainable is None or bool(trainable)) and self._trainable
        reuse = True if self.built else self._reuse
        with hr.variable_scope(self._scope, reuse=reuse, auxiliary_name_scope=False) as scope:
            self._current_scope = scope
            with hr.name_scope(scope.original_name_scope):
                variable = hr.get_variable(
                    name,
                    () if shape is None else shape,
                    kind,
                    find_initializer(initializer),
                    trainable=wanted,
                    constraint=constraint,
                    partitioner=partitioner,
                    use_resource=use_resource,
                    synchronization=synchronization,
                    aggregation=aggregation,
                )
                parts = _parts(variable)
                if regularizer is not None and not any(
                    v is part for v in existing for part in parts
                ):
                    for part in parts:
                        with hr.name_scope(f"{name}/Regularizer"):
                            self.add_loss(regularizer(part))
        # A custom getter may have had another opinion.
        kept = wanted and any(v is parts[0] for v in hr.trainable_variables())
        listed = self._trainable_weights if kept else self._non_trainable_weights
        listed.append(variable)
        return variable

    def add_variable(self, *args: Any, **kwargs: Any) -> Any:
        """Make a variable, as ``add_weight`` does."""
        return self.add_weight(*args, **kwargs)

    @property
    def trainable(self) -> bool:
        """Whether optimizers change the variables by default; decided when they are made."""
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self._trainable = bool(value)

    @property
    def trainable_weights(self) -> list[Any]:
        """The variables that optimizers change; none while the layer is not trainable."""
        return list(self._trainable_weights) if self._trainable else []

    @property
    def non_trainable_weights(self) -> list[Any]:
        """The variables that optimizers do not change."""
        first = [] if self._trainable else self._trainable_weights
        return [*first, *self._non_trainable_weights]

    @property
    def weights(self) -> list[Any]:
        """All variables, trainable ones first."""
        return self.trainable_weights + self.non_trainable_weights

    @property
    def trainable_variables(self) -> list[Any]:  # type: ignore[override]
        """The same as ``trainable_weights``."""
        return self.trainable_weights

    @property
    def non_trainable_variables(self) -> list[Any]:
        """The same as ``non_trainable_weights``."""
        return self.non_trainable_weights

    @property
    def variables(self) -> list[Any]:  # type: ignore[override]
        """The same as ``weights``."""
        return self.weights

    def count_params(self) -> int:
        """Return the number of elements of all variables.

        Raises:
            GraphError: before the variables are made.
        """
        if not self.built:
            raise GraphError(
                f"layer {self._name!r} has no variables to count yet: call it, or "
                "build(input_shape), first"
            )
        return sum(int(np.prod(variable.shape.known)) for variable in self.weights)

    def get_weights(self) -> list[Any]:
        """Return the values of all variables in the default session, in the order of ``weights``.

        Raises:
            GraphError: outside of a ``with session:`` block.
        """
        return list(session_for(self._name).run(self.weights))

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Set all variables in the default session.

        Args:
            weights: A value for each variable, in the order of ``weights``.

        Raises:
            AttributeValueError: if there are more or fewer values than variables.
            ShapeError: if a value has another shape than its variable.
            GraphError: outside of a ``with session:`` block.
        """
        variables = self.weights
        if len(weights) != len(variables):
            raise AttributeValueError(
                f"layer {self._name!r} has {len(variables)} variables, got {len(weights)} values"
            )
        values = [np.asarray(value) for value in weights]
        for variable, value in zip(variables, values, strict=True):
            if not variable.shape.is_compatible_with(value.shape):
                raise ShapeError(
                    f"variable {variable.op_name!r} has shape {variable.shape.plain}, got a value "
                    f"of shape {list(value.shape)}"
                )
        session = session_for(self._name)
        for variable, value in zip(variables, values, strict=True):
            variable.load(value, session)

    # -- losses and updates

    @property
    def losses(self) -> list[Tensor]:
        """What regularizers and ``add_loss`` added."""
        return [loss for loss, _ in self._losses]

    def add_loss(self, losses: Any, inputs: Any = None) -> None:
        """Add to the losses of the layer, and to the graph's regularization losses.

        Args:
            losses: A tensor, a number, a function without arguments that returns one, None, or a
                list of them.
            inputs: Anything but None where they depend on the inputs of a call.
        """
        added = []
        for item in losses if isinstance(losses, list | tuple) else [losses]:
            loss = item() if callable(item) else item
            if loss is not None:
                made = loss if isinstance(loss, Tensor) else hr.convert_to_tensor(loss, hr.float32)
                added.append((made, inputs is not None))
        self._losses += added
        collect(hr.GraphKeys.REGULARIZATION_LOSSES, [loss for loss, _ in added])

    def get_losses_for(self, inputs: Any) -> list[Tensor]:
        """Return the losses that follow from some inputs.

        Args:
            inputs: A tensor, or a list of them; None for the losses that follow from none.
        """
        if inputs is None:
            return [loss for loss, conditional in self._losses if not conditional]
        found = [loss for loss, conditional in self._losses if conditional]
        return [loss for loss in found if depends(loss.op, flatten(inputs))]

    @property
    def updates(self) -> list[Operation]:
        """The operations to run with each step of training; none while it is not trainable."""
        return list(self._updates) if self._trainable or self.stateful else []

    def add_update(self, updates: Any, inputs: Any = None) -> None:
        """Add operations to run with each step of training.

        Those added before the end of a call are listed in the graph's update operations.

        Args:
            updates: An operation, a tensor, a function without arguments that returns one, or a
                list of them.
            inputs: Ignored; what an update depends on is found in the graph.
        """
        del inputs
        for item in updates if isinstance(updates, list | tuple) else [updates]:
            made = item() if callable(item) else item
            self._updates.append(made if isinstance(made, Operation) else as_input(made).op)

    def get_updates_for(self, inputs: Any) -> list[Operation]:
        """Return the updates that follow from some inputs.

        Args:
            inputs: A tensor, or a list of them; None for the updates that follow from no input of
                a call.
        """
        if inputs is None:
            given = flatten(self._calls.inputs)
            return [op for op in self.updates if not depends(op, given)]
        return [op for op in self.updates if depends(op, flatten(inputs))]

    # -- what it is, and what it was called with

    @property
    def name(self) -> str:
        """The layer's name."""
        return self._name

    @property
    def graph(self) -> hr.Graph:
        """The graph in which the layer was made."""
        return self._graph

    @property
    def dtype(self) -> DType | None:
        """The dtype of its variables, None until that is known."""
        return self._dtype

    @property
    def input_spec(self) -> Any:
        """What the layer takes: an ``InputSpec``, a structure of them, or None."""
        return self._input_spec

    @input_spec.setter
    def input_spec(self, value: Any) -> None:
        for spec in flatten(value):
            if spec is not None and not isinstance(spec, InputSpec):
                raise DTypeError(f"input_spec must be an InputSpec, got {shown(spec)}")
        self._input_spec = value

    @property
    def activity_regularizer(self) -> Any:
        """The function of each output whose result is added to the losses, or None."""
        return self._activity_regularizer

    @activity_regularizer.setter
    def activity_regularizer(self, value: Any) -> None:
        self._activity_regularizer = value

    @property
    def input(self) -> Any:
        """The inputs of the first call."""
        return self.get_input_at(0)

    @property
    def output(self) -> Any:
        """The outputs of the first call."""
        return self.get_output_at(0)

    @property
    def input_shape(self) -> Any:
        """The static shape of the input, which must be the same in all calls."""
        return self._calls.shape("input")

    @property
    def output_shape(self) -> Any:
        """The static shape of the output, which must be the same in all calls."""
        return self._calls.shape("output")

    def get_input_at(self, node_index: int) -> Any:
        """Return the inputs of a call.

        Args:
            node_index: The number of the call, from 0.
        """
        return self._calls.at(node_index, "input")

    def get_output_at(self, node_index: int) -> Any:
        """Return the outputs of a call.

        Args:
            node_index: The number of the call, from 0.
        """
        return self._calls.at(node_index, "output")

    def get_input_shape_at(self, node_index: int) -> Any:
        """Return the static shape of the inputs of a call.

        Args:
            node_index: The number of the call, from 0.
        """
        return shapes_of(self.get_input_at(node_index))

    def get_output_shape_at(self, node_index: int) -> Any:
        """Return the static shape of the outputs of a call.

        Args:
            node_index: The number of the call, from 0.
        """
        return shapes_of(self.get_output_at(node_index))


def _parts(variable: Any) -> list[Any]:
    """Return the parts of a partitioned variable, else the variable."""
    return list(variable) if isinstance(variable, hr.PartitionedVariable) else [variable]
