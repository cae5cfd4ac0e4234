"""What cells of recurrent networks share: names, variables, states, and how they are called."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

from headrace import dtypes
from headrace.arguments import whole
from headrace.dtypes import DType, as_dtype
from headrace.errors import ArgumentTypeError, AttributeValueError, GraphError, ShapeError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.graph import Graph
from headrace.graph.scopes import get_default_graph, name_scope
from headrace.graph.static_values import static_value
from headrace.graph.structure import flatten, pack
from headrace.graph.tensor import Tensor
from headrace.module import Module
from headrace.ops.activation import elu, relu, selu, softplus, softsign
from headrace.ops.array import concat, shape, stack
from headrace.ops.constant import fill, zeros
from headrace.ops.get_variable import get_variable
from headrace.ops.identity import identity
from headrace.ops.linalg import matmul
from headrace.ops.nn import softmax
from headrace.ops.rnn_config import arguments_of, config_of
from headrace.ops.transcendental import exp, sigmoid, tanh
from headrace.ops.variable_scope import variable_scope
from headrace.shapes import Shape

_ACTIVATIONS: dict[str, Callable[..., Any]] = {
    "elu": elu,
    "exponential": exp,
    "linear": identity,
    "relu": relu,
    "selu": selu,
    "sigmoid": sigmoid,
    "softmax": softmax,
    "softplus": softplus,
    "softsign": softsign,
    "tanh": tanh,
}
# A key that is no name, as those of collections are: how many cells of each class a graph has.
_COUNTS = ("rnn_cell_names",)


class RNNCell(Module):
    """A cell; subclasses state their sizes and say in ``call`` what a step is.

    Variables are made when a cell is first called, or by ``build``, in a variable scope that is
    named after its class, and used again by all further calls.

    Attributes:
        built: Whether the variables are made.
        dtype: The dtype of the variables, None until that is known.
        trainable: Whether optimizers change the variables by default.
        graph: The graph in which the cell was made.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Remember the arguments, for ``get_config``."""
        made = super().__new__(cls)
        made._given = args, kwargs
        return made

    def __init__(
        self, trainable: bool = True, name: str | None = None, dtype: Any = None, **kwargs: Any
    ) -> None:
        """Make a cell without variables.

        Args:
            trainable: Whether optimizers change its variables by default.
            name: The name of its variable scope; that of its class if None, made unique.
            dtype: The dtype of its variables; that of its inputs if None.
            **kwargs: ``_reuse``, whether its variables exist already, in the scope of its name.
        """
        self._reuse = kwargs.pop("_reuse", None)
        kwargs.pop("activity_regularizer", None)
        if kwargs:
            raise TypeError(
                f"{type(self).__name__} takes no argument {', '.join(sorted(kwargs))}; all cells "
                "take trainable, name and dtype"
            )
        self._asked = name
        self._name = name if name is not None else _counted(self)
        self.trainable = bool(trainable)
        self.dtype = None if dtype is None else as_dtype(dtype)
        self.built = False
        self.graph: Graph = get_default_graph()
        self._made: list[Any] = []
        # The scope in which ``prepare`` builds, or else one that the first variable opens.
        self._scope: Any = None
        self._own: Any = None
        self._called = False

    @property
    def name(self) -> str:
        """The cell's name."""
        return self._name

    @property
    def state_size(self) -> Any:
        """The size of the state, or a structure of sizes."""
        raise NotImplementedError(f"{type(self).__name__} needs a property state_size")

    @property
    def output_size(self) -> Any:
        """The size of the output."""
        raise NotImplementedError(f"{type(self).__name__} needs a property output_size")

    @property
    def _inner_cells(self) -> Sequence[Any]:
        """The cells of which it is made."""
        return ()

    # -- variables

    @property
    def variables(self) -> list[Any]:  # type: ignore[override]
        """All variables."""
        return list(self._made)

    @property
    def weights(self) -> list[Any]:
        """All variables."""
        return self.variables

    @property
    def trainable_variables(self) -> list[Any]:  # type: ignore[override]
        """The variables that optimizers change by default."""
        return [v for v in self.variables if v.trainable]

    @property
    def trainable_weights(self) -> list[Any]:
        """The variables that optimizers change by default."""
        return self.trainable_variables

    @property
    def non_trainable_variables(self) -> list[Any]:
        """The variables that optimizers do not change."""
        return [v for v in self.variables if not v.trainable]

    @property
    def non_trainable_weights(self) -> list[Any]:
        """The variables that optimizers do not change."""
        return self.non_trainable_variables

    @property
    def losses(self) -> list[Tensor]:
        """What is added to the loss by the cell itself: nothing."""
        return []

    @property
    def updates(self) -> list[Any]:
        """What is to be run with each step of training: nothing."""
        return []

    @property
    def scope_name(self) -> str:
        """The name of the cell's variable scope.

        Raises:
            GraphError: before it has one.
        """
        opened = self._scope if self._scope is not None else self._own
        if opened is None:
            raise GraphError(f"cell {self._name!r} has no scope yet: its first call opens it")
        return str(opened.name)

    def count_params(self) -> int:
        """Return the number of elements of all variables.

        Raises:
            GraphError: before the variables are made.
        """
        if not self.built:
            raise GraphError(f"cell {self._name!r} has no variables to count yet: call it first")
        total = 0
        for variable in self.variables:
            count = 1
            for dim in Shape(variable.shape).known:
                count *= dim
            total += count
        return total

    # -- what it was made with

    _given: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that the cell was made with, of which ``from_config`` makes another.

        Activations are their names; cells and initializers are dicts with the name of their class
        and what they were made with.
        """
        return config_of(self, self._given, _ACTIVATIONS)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Return a cell that is made like another one.

        Args:
            config: What ``get_config`` of that one returned.

        Raises:
            ArgumentTypeError: if it is no dict.
            AttributeValueError: if it names a class that there is not.
        """
        return cls(**arguments_of(cls, config, known_cells()))

    # -- steps

    def build(self, input_shape: Any) -> None:
        """Make the variables for inputs of a shape; called once."""

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """Return the output and the new state."""
        raise NotImplementedError(f"{type(self).__name__} needs a method call(inputs, state)")

    def prepare(self, inputs: Any, scope: Any = None) -> None:
        """Make the variables, unless they are there, for inputs like those given."""
        if self.built:
            return
        first = _first(inputs)
        if self.dtype is None:
            self.dtype = first.dtype
        base = base_name(self)
        name = scope if scope is not None else self._asked
        if name is None and self._reuse:
            name = base
        with variable_scope(name, base, reuse=self._reuse or None) as self._scope:
            self.build(first.shape)
        self.built = True

    @contextmanager
    def _scoped(self) -> Iterator[None]:
        """Make variables in a scope of the cell's own, also where ``build`` is called by itself."""
        if self._scope is not None:
            yield
            return
        base = base_name(self)
        with variable_scope(self._own or self._asked, base, reuse=self._reuse or None) as own:
            self._own = own
            yield

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        """Take a step.

        Args:
            inputs: [batch, size].
            state: A structure like ``state_size`` of [batch, size].
            scope: The variable scope of the first call, in place of the cell's own.

        Returns:
            The output [batch, output_size], and the new state.
        """
        given = pack(inputs, [convert_to_tensor(x) for x in flatten(inputs)])
        self.prepare(given, scope)
        if self._scope is None:
            return self.call(given, state)
        # Variables that ``call`` itself makes, or finds again, stand in the cell's scope, too.
        reuse = True if self._called else None
        with (
            variable_scope(self._scope, reuse=reuse, auxiliary_name_scope=False) as scope,
            name_scope(scope.original_name_scope),
        ):
            found = self.call(given, state)
        self._called = True
        return found

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """Return a state of zeros.

        Args:
            batch_size: How many examples: a number or a scalar tensor.
            dtype: The dtype.
        """
        kind = as_dtype(dtype)
        sizes = flatten(self.state_size)
        made = [zeros(_with_batch(batch_size, size), kind) for size in sizes]
        return pack(self.state_size, made)

    def get_initial_state(
        self, inputs: Any = None, batch_size: Any = None, dtype: Any = None
    ) -> Any:
        """Return a state of zeros, for a batch like ``inputs`` where these are given.

        Args:
            inputs: [batch, ...].
            batch_size: How many states; that of ``inputs`` if None.
            dtype: The dtype of the state; that of ``inputs`` if None.

        Raises:
            AttributeValueError: if there are neither ``inputs`` nor both of the others, or if the
                static batch size or the dtype of ``inputs`` is another one.
        """
        if inputs is not None:
            first = convert_to_tensor(_first(inputs))
            known = first.spec.shape[0] if first.shape.rank is not None else None
            given = static_value(batch_size) if isinstance(batch_size, Tensor) else batch_size
            if batch_size is not None and known != (None if given is None else int(given)):
                raise AttributeValueError(
                    f"get_initial_state: batch_size is {shown(given)}, of inputs {shown(known)}"
                )
            if dtype is not None and as_dtype(dtype) != first.dtype:
                raise AttributeValueError(
                    f"get_initial_state: dtype is {shown(dtype)}, that of inputs {first.dtype}"
                )
            batch_size = shape(first)[0] if known is None else known
            dtype = first.dtype
        if batch_size is None or dtype is None:
            raise AttributeValueError("get_initial_state needs inputs, or batch_size and dtype")
        return self.zero_state(batch_size, dtype)

    def add_variable(
        self, name: str, shape: Sequence[int], initializer: Any = None, **options: Any
    ) -> Any:
        """Make a variable, while the cell is built."""
        if not self.trainable:
            options["trainable"] = False
        dtype = options.pop("dtype", None) or self.dtype
        with self._scoped():
            variable = get_variable(name, shape, dtype, initializer, **options)
        self._made.append(variable)
        return variable

    add_weight = add_variable


def known_cells() -> dict[str, type[RNNCell]]:
    """Return all classes of cells that there are by name, those of the program among them."""
    found: dict[str, type[RNNCell]] = {}
    waiting = [RNNCell]
    while waiting:
        for kind in waiting.pop().__subclasses__():
            found.setdefault(kind.__name__, kind)
            waiting.append(kind)
    return found


def _first(inputs: Any) -> Any:
    found = flatten(inputs)
    if not found:
        raise AttributeValueError(f"a cell needs inputs, got {shown(inputs)}")
    return found[0]


def _with_batch(batch_size: Any, size: Any) -> Any:
    dims = [size] if isinstance(size, int) else list(size)
    if isinstance(batch_size, Tensor):
        return stack([batch_size, *dims])
    return [whole(batch_size, "batch_size"), *dims]


def checked_cell(cell: Any, label: str) -> Any:
    """Return a cell: an instance of RNNCell, or what has all that is asked of one.

    Raises:
        ArgumentTypeError: if it is none.
    """
    if isinstance(cell, RNNCell):
        return cell
    sized = hasattr(cell, "output_size") and hasattr(cell, "state_size")
    starts = hasattr(cell, "zero_state") or hasattr(cell, "get_initial_state")
    if not (callable(cell) and sized and starts):
        raise ArgumentTypeError(
            f"{label} must be an instance of RNNCell, or be callable and have state_size, "
            f"output_size and zero_state; got {shown(cell)}"
        )
    return cell


def calls_itself(cell: Any) -> bool:
    """Whether a cell, or one inside of it, says in ``__call__`` what a step is.

    It makes its variables wherever it is called, and may be called but once for all steps.
    """
    if not isinstance(cell, RNNCell) or type(cell).__call__ is not RNNCell.__call__:
        return True
    return any(map(calls_itself, cell._inner_cells))  # noqa: SLF001 - no name of TensorFlow


def prepare(cell: Any, inputs: Any, scope: Any = None) -> list[Any]:
    """Make the variables of a cell ahead, and return them; none of one that calls itself."""
    if calls_itself(cell):
        return []
    cell.prepare(inputs, scope)
    found: list[Any] = cell.variables
    return found


def _counted(cell: RNNCell) -> str:
    kept = get_default_graph().outermost.get_collection_ref(_COUNTS)
    if not kept:
        kept.append({})
    counts: dict[str, int] = kept[0]
    own = base_name(cell)
    counts[own] = counts.get(own, 0) + 1
    return f"{own}_{counts[own]}"


def base_name(cell: RNNCell) -> str:
    """Return the name of a cell's class in lower case, with underscores between its words."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", type(cell).__name__)
    return words.lower()


def activation_of(given: Any) -> Callable[..., Any]:
    """Return an activation that a program gives as a function or a name; tanh for None.

    Raises:
        AttributeValueError: if there is none of the name.
    """
    if given is None:
        return tanh
    if not isinstance(given, str):
        return given  # type: ignore[no-any-return]
    if given not in _ACTIVATIONS:
        known = ", ".join(sorted(_ACTIVATIONS))
        raise AttributeValueError(f"there is no activation {shown(given)}; there are {known}")
    return _ACTIVATIONS[given]


def constant_start(value: float) -> Callable[..., Any]:
    """Return an initializer with one value everywhere."""

    def make(shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        kind: DType = dtypes.float32 if dtype is None else as_dtype(dtype)
        return fill(list(shape), convert_to_tensor(value, kind))

    return make


def depth_of(cell: RNNCell, input_shape: Any) -> int:
    """Return the last dimension of inputs.

    Raises:
        ShapeError: if it is not known.
    """
    shape = Shape(input_shape)
    depth = shape[-1] if shape.rank else None
    if depth is None:
        raise ShapeError(
            f"{type(cell).__name__} needs inputs whose last dimension is known, got {shape}"
        )
    return int(depth)


def positive(units: Any) -> int:
    """Return a number of units.

    Raises:
        AttributeValueError: if it is no positive integer.
    """
    if not isinstance(units, int) or units < 1:
        raise AttributeValueError(f"num_units must be an integer >= 1, got {shown(units)}")
    return units


def affine(parts: Sequence[Any], kernel: Any, bias: Any) -> Tensor:
    """Return the product of what stands side by side and a kernel, with a bias."""
    result: Tensor = matmul(concat(list(parts), 1), kernel) + bias
    return result
