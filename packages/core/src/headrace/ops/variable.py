"""Variables: the Python face of a named buffer that outlives steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, final

from headrace.arguments import items
from headrace.dtypes import DType, as_dtype
from headrace.errors import AttributeValueError, DTypeError, shown
from headrace.graph.collections import GraphKeys, usual_collections
from headrace.graph.default_session import default_session
from headrace.graph.graph import Graph
from headrace.graph.indexed_slices import IndexedSlices
from headrace.graph.operation import Operation
from headrace.graph.rendering import renderer
from headrace.graph.scopes import (
    beside,
    control_dependencies,
    current_scope,
    get_default_graph,
    init_scope,
    name_scope,
)
from headrace.graph.spec import handle_spec
from headrace.graph.tensor import Tensor, TensorOperators
from headrace.graph.tensor_shape import TensorShape
from headrace.ops import assign as writes
from headrace.ops.array import rank, stack
from headrace.ops.cond import cond
from headrace.ops.control import group
from headrace.ops.gather import gather, gather_nd
from headrace.ops.initial_values import declared, in_any_order, initial
from headrace.ops.save_slice_info import SaveSliceInfo
from headrace.ops.sharing import VariableAggregation, VariableSynchronization, checked_sharing
from headrace.ops.state import assign_variable, read_variable, var_handle
from headrace.ops.variable_creators import Created
from headrace.shapes import UNKNOWN, Shape

_AUTO = VariableSynchronization.AUTO
_NONE = VariableAggregation.NONE


@final
class Variable(TensorOperators, metaclass=Created):
    """A tensor that is kept between steps and changed by assignment.

    Used where a tensor is expected, it is read anew, so that a read made under
    ``control_dependencies`` sees the writes named there. It has no value in a session until its
    initializer was run.

    Attributes:
        graph: The graph to which it belongs.
        handle: [], what operations on it take.
        initial_value: What its initializer assigns.
        initializer: The operation that assigns the initial value.
        snapshot: The read that a session fetches.
        trainable: Whether optimizers change it by default.
        constraint: The function that optimizers apply to the value after each change, or None.
        save_slice_info: Which part of a partitioned variable it is, or None.
        synchronization: The ``hr.VariableSynchronization`` that the program gave; without effect.
        aggregation: The ``hr.VariableAggregation`` that the program gave; without effect.
    """

    # With a dictionary, for what layers and libraries note on variables.
    __slots__ = (
        "__dict__",
        "__weakref__",
        "aggregation",
        "constraint",
        "graph",
        "handle",
        "initial_value",
        "initializer",
        "save_slice_info",
        "snapshot",
        "synchronization",
        "trainable",
    )

    SaveSliceInfo = SaveSliceInfo

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        collections: Iterable[str] | None = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        expected_shape: Any = None,
        import_scope: str | None = None,
        constraint: Callable[[Tensor], Any] | None = None,
        use_resource: bool | None = None,
        synchronization: Any = None,
        aggregation: Any = None,
        shape: Any = None,
        *,
        shared_name: str | None = None,
    ) -> None:
        """Make a variable in the default graph.

        Args:
            initial_value: What its initializer assigns: a tensor, data, or a function that
                returns one. It also sets dtype and shape.
            trainable: Whether optimizers change it by default; True if None.
            collections: The collections of the graph that list it; that of global variables if
                None. Trainable ones are listed in that of trainable variables besides.
            validate_shape: Whether all later values must have the initial value's shape, which
                is known then.
            caching_device: Ignored; steps keep what they read.
            name: The variable's name; made unique.
            variable_def: Makes the variable of the graph that a ``VariableDef`` describes once
                more, and takes the place of ``initial_value``; as for ``from_proto``.
            dtype: The dtype; that of ``initial_value`` if None.
            expected_shape: The shape that the initial value must have.
            import_scope: The scope under which the operations of ``variable_def`` stand.
            constraint: A function of the value, such as a projection, that returns what
                optimizers put in its place after each change.
            use_resource: All variables behave as TensorFlow's resource variables. True allows an
                initial value of unknown shape, as it does there.
            synchronization: Kept, without effect; ``ON_READ`` makes it untrained by default.
            aggregation: Kept, without effect.
            shape: The shape of all values, to be less precise than the initial value's:
                ``Shape(None)`` for one that may change.
            shared_name: Its name in its container; the variable's own name if None. Variables of
                one shared name in a named container or a cluster are one buffer.

        Raises:
            DTypeError: if the initial value does not have the dtype.
            ShapeError: if it does not have the shape, or its shape is not known.
            AttributeValueError: if something is given that variables do not take.
        """
        del caching_device
        if synchronization is not None or aggregation is not None:
            sharing = checked_sharing(synchronization, aggregation, trainable, name)
            self.synchronization, self.aggregation, trainable = sharing
        else:
            self.synchronization, self.aggregation = _AUTO, _NONE
        if variable_def is not None:
            self._be(variable_def, import_scope, initial_value)
            return
        if initial_value is None:
            raise DTypeError("a Variable needs an initial_value: data, a tensor, or a function")
        if collections is not None and (
            isinstance(collections, str) or not isinstance(collections, Iterable)
        ):
            raise AttributeValueError(
                f"collections must be a list of names of collections, got {shown(collections)}"
            )
        if constraint is not None and not callable(constraint):
            raise AttributeValueError(f"constraint must be a function, got {shown(constraint)}")
        self.trainable = True if trainable is None else bool(trainable)
        self.constraint = constraint
        self.save_slice_info: SaveSliceInfo | None = None
        listed = (
            [GraphKeys.GLOBAL_VARIABLES]
            if collections is None
            else items(collections, "collections")
        )
        if self.trainable and GraphKeys.TRAINABLE_VARIABLES not in listed:
            listed.append(GraphKeys.TRAINABLE_VARIABLES)
        with init_scope(), name_scope(name, "Variable") as scope:
            start = initial(initial_value, None if dtype is None else as_dtype(dtype))
            if validate_shape:
                lax = use_resource or shape is not None
                shape_of_all = declared(start, shape, expected_shape, lax)
            else:
                shape_of_all = UNKNOWN
            self.graph: Graph = get_default_graph()
            self.initial_value = start
            own_name = scope[:-1]
            self.handle = var_handle(
                start.dtype,
                shape_of_all,
                current_scope().container,
                own_name if shared_name is None else shared_name,
                # The name of the scope itself.
                name=scope or None,
            )
            value = in_any_order(start)
            with beside(self.handle):
                self.initializer: Operation = assign_variable(
                    self.handle, value, validate_shape, name="Assign"
                ).op
                self.snapshot = read_variable(self.handle, name="read")
        self.graph.add_variable(self)
        self.graph.add_to_collections(listed, self)

    @classmethod
    def from_parts(
        cls,
        handle: Tensor,
        initial_value: Tensor,
        initializer: Operation,
        snapshot: Tensor,
        trainable: bool,
        collections: Sequence[str] | None = None,
    ) -> Variable:
        """Return the variable that nodes of a loaded graph make up, and list it there."""
        self = cls.__new__(cls)
        self.graph = handle.graph
        self.handle = handle
        self.initial_value = initial_value
        self.initializer = initializer
        self.snapshot = snapshot
        self.trainable = trainable
        self.constraint = None
        self.save_slice_info = None
        self.synchronization, self.aggregation = _AUTO, _NONE
        self.graph.add_variable(self)
        chosen = usual_collections(trainable) if collections is None else collections
        self.graph.add_to_collections(chosen, self)
        return self

    @property
    def name(self) -> str:
        """The variable's name with the ``:0`` that tensors have."""
        return self.handle.name

    @property
    def op_name(self) -> str:
        """The variable's name in its graph, by which checkpoints know it."""
        return self.handle.op.name

    @property
    def op(self) -> Operation:
        """The operation that yields the handle."""
        return self.handle.op

    @property
    def dtype(self) -> DType:
        """The dtype of its values."""
        content = self.handle.spec.content
        assert content is not None
        return content.dtype

    @property
    def shape(self) -> TensorShape:
        """The static shape of its values."""
        content = self.handle.spec.content
        assert content is not None
        return TensorShape(content.shape)

    def get_shape(self) -> TensorShape:
        """Return the static shape of its values."""
        return self.shape

    def set_shape(self, shape: Any) -> None:
        """State what is known of the shape of all values; nothing checks it when the graph runs.

        Args:
            shape: A shape, or a list of sizes and Nones.

        Raises:
            ShapeError: if it contradicts what is known.
        """
        content = self.handle.spec.content
        assert content is not None
        self.handle.spec = handle_spec(content.sharpened(Shape(shape)))
        self.snapshot.set_shape(shape)

    @property
    def _save_slice_info(self) -> Any:
        """The name under which libraries that read checkpoints themselves ask for the part."""
        return self.save_slice_info

    def to_proto(self, export_scope: str | None = None) -> Any:
        """Return what makes up the variable as a ``VariableDef``, None if it is not in the scope.

        Needs the package headrace-io.

        Args:
            export_scope: The scope, which names are written without.

        Raises:
            PluginError: if headrace-io is not installed.
        """
        return renderer().variable_def(self, export_scope)

    def _be(self, variable_def: Any, import_scope: str | None, initial_value: Any) -> None:
        """Take all that the variable has that a message describes."""
        if initial_value is not None:
            raise AttributeValueError("give an initial_value or a variable_def, not both")
        found = Variable.from_proto(variable_def, import_scope)
        for slot in Variable.__slots__:
            if not slot.startswith("__") and hasattr(found, slot):
                setattr(self, slot, getattr(found, slot))

    @staticmethod
    def from_proto(variable_def: Any, import_scope: str | None = None) -> Variable:
        """Return the variable of the default graph that a ``VariableDef`` describes.

        It is the one that the graph lists, or one that is made of operations of the graph.

        Args:
            variable_def: The message, or a serialized one.
            import_scope: The scope under which its operations stand.

        Raises:
            DTypeError: if it is no such message.
            DataLossError: if the graph does not have what it names.
            PluginError: if headrace-io is not installed.
        """
        found: Variable = renderer().variable_of(variable_def, import_scope)
        return found

    @property
    def device(self) -> str:
        """The device asked for."""
        return self.handle.op.device

    def value(self) -> Tensor:
        """Return a new read of the variable."""
        with beside(self.handle):
            return read_variable(self.handle, name=f"{self.op_name.rpartition('/')[2]}/read")

    def read_value(self) -> Tensor:
        """Return a new read of the variable, of the name ``read`` in the scope at hand."""
        with beside(self.handle):
            return read_variable(self.handle, name="read")

    def initialized_value(self) -> Tensor:
        """Return the value if there is one, else the one that the initializer assigns.

        For the initial values of variables that depend on others: it is right in whatever order
        the initializers run.
        """
        with init_scope():
            inputs = self.initializer.inputs
            start = inputs[1] if len(inputs) > 1 else self.initial_value
            result = cond(self.is_initialized(), self.value, lambda: start)
        assert isinstance(result, Tensor)
        return result

    def is_initialized(self) -> Tensor:
        """Return whether the variable has a value, as a scalar bool tensor."""
        return writes.is_variable_initialized(self)

    def assign(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Replace the value; yields the new one, or the operation if ``read_value`` is false."""
        return _result(writes.assign(self, value, None, use_locking, name), read_value)

    def assign_add(
        self,
        delta: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Add ``delta``; yields the new value, or the operation if ``read_value`` is false."""
        return _result(writes.assign_add(self, delta, use_locking, name), read_value)

    def assign_sub(
        self,
        delta: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Subtract ``delta``; yields the new value, or the operation if ``read_value`` is false."""
        return _result(writes.assign_sub(self, delta, use_locking, name), read_value)

    def scatter_update(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Tensor:
        """Replace the rows that ``IndexedSlices`` name by theirs; yields the new value."""
        return writes.scatter_update(self, *_slices(sparse_delta), use_locking, name)

    def scatter_add(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Tensor:
        """Add ``IndexedSlices``; yields the new value."""
        return writes.scatter_add(self, *_slices(sparse_delta), use_locking, name)

    def scatter_sub(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Tensor:
        """Subtract ``IndexedSlices``; yields the new value."""
        return writes.scatter_sub(self, *_slices(sparse_delta), use_locking, name)

    def scatter_mul(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Tensor:
        """Multiply rows by those of ``IndexedSlices``; yields the new value."""
        return writes.scatter_mul(self, *_slices(sparse_delta), use_locking, name)

    def scatter_div(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Tensor:
        """Divide rows by those of ``IndexedSlices``; yields the new value."""
        return writes.scatter_div(self, *_slices(sparse_delta), use_locking, name)

    def scatter_min(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Tensor:
        """Lower rows to those of ``IndexedSlices``; yields the new value."""
        return writes.scatter_min(self, *_slices(sparse_delta), use_locking, name)

    def scatter_max(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Tensor:
        """Raise rows to those of ``IndexedSlices``; yields the new value."""
        return writes.scatter_max(self, *_slices(sparse_delta), use_locking, name)

    def scatter_nd_update(self, indices: Any, updates: Any, name: str | None = None) -> Tensor:
        """Replace the slices at ``indices``; yields the new value."""
        return writes.scatter_nd_update(self, indices, updates, True, name)

    def scatter_nd_add(self, indices: Any, updates: Any, name: str | None = None) -> Tensor:
        """Add to the slices at ``indices``; yields the new value."""
        return writes.scatter_nd_add(self, indices, updates, False, name)

    def scatter_nd_sub(self, indices: Any, updates: Any, name: str | None = None) -> Tensor:
        """Subtract from the slices at ``indices``; yields the new value."""
        return writes.scatter_nd_sub(self, indices, updates, False, name)

    def count_up_to(self, limit: int) -> Tensor:
        """Increment up to ``limit``; yields the value from before."""
        return writes.count_up_to(self, limit)

    def sparse_read(self, indices: Any, name: str | None = None) -> Tensor:
        """Return the rows ``indices`` of the value."""
        return gather(self, indices, name=name)

    def gather_nd(self, indices: Any, name: str | None = None) -> Tensor:
        """Return the elements or slices at ``indices`` of the value."""
        return gather_nd(self, indices, name=name)

    def load(self, value: Any, session: Any = None) -> None:
        """Set the value in ``session``, or in the default session, to an array or number."""
        chosen = session if session is not None else default_session()
        chosen.run(self.initializer, {self.initializer.inputs[1]: value})

    def eval(self, session: Any = None) -> Any:
        """Fetch the value from ``session``, or from the default session."""
        return self.snapshot.eval(session=session)

    def _as_tensor(self) -> Tensor:
        return self.value()

    def _as_graph_element(self) -> Tensor:
        return self.snapshot

    def __repr__(self) -> str:
        return f"<Variable {self.name!r} {self.dtype}{self.shape}>"


def _result(updated: Tensor, read_value: bool) -> Any:
    return updated if read_value else updated.op


def _slices(sparse_delta: Any) -> tuple[Tensor, Tensor]:
    if not isinstance(sparse_delta, IndexedSlices):
        raise DTypeError(
            f"expected hr.IndexedSlices(values, indices), got {shown(sparse_delta)}; functions "
            "such "
            "as hr.scatter_add(variable, indices, updates) take indices and updates"
        )
    return sparse_delta.indices, sparse_delta.values


# -- lists of variables


def global_variables(scope: str | None = None) -> list[Variable]:
    """Return the global variables of the default graph, in the order in which they were made.

    Args:
        scope: A regular expression at the beginning of their names; all if None.
    """
    return get_default_graph().outermost.get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


def local_variables(scope: str | None = None) -> list[Variable]:
    """Return the variables of the default graph that belong to this process, such as counters.

    Args:
        scope: A regular expression at the beginning of their names; all if None.
    """
    return get_default_graph().outermost.get_collection(GraphKeys.LOCAL_VARIABLES, scope)


def model_variables(scope: str | None = None) -> list[Variable]:
    """Return the variables of the default graph that a program put among those of the model.

    Args:
        scope: A regular expression at the beginning of their names; all if None.
    """
    return get_default_graph().outermost.get_collection(GraphKeys.MODEL_VARIABLES, scope)


def moving_average_variables(scope: str | None = None) -> list[Variable]:
    """Return the variables of the default graph of which averages are kept.

    Args:
        scope: A regular expression at the beginning of their names; all if None.
    """
    return get_default_graph().outermost.get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, scope)


def trainable_variables(scope: str | None = None) -> list[Variable]:
    """Return the variables of the default graph that optimizers change by default.

    Args:
        scope: A regular expression at the beginning of their names; all if None.
    """
    return get_default_graph().outermost.get_collection(GraphKeys.TRAINABLE_VARIABLES, scope)


def all_variables() -> list[Variable]:
    """Return the global variables; the old name of ``global_variables``."""
    return global_variables()


# -- initializing


def variables_initializer(
    var_list: Iterable[Variable] | None, name: str | None = "init"
) -> Operation:
    """Return an operation that initializes the variables ``var_list``, none if None."""
    return group(*(v.initializer for v in items(var_list or (), "var_list")), name=name)


def global_variables_initializer() -> Operation:
    """Return an operation that initializes the global variables that the default graph has now."""
    return variables_initializer(global_variables())


def local_variables_initializer() -> Operation:
    """Return an operation that initializes the local variables that the default graph has now."""
    return variables_initializer(local_variables())


def initialize_all_variables() -> Operation:
    """Return ``global_variables_initializer()``, of which this is the old name."""
    return global_variables_initializer()


def initialize_local_variables() -> Operation:
    """Return ``local_variables_initializer()``, of which this is the old name."""
    return local_variables_initializer()


def initialize_variables(var_list: Iterable[Variable], name: str | None = "init") -> Operation:
    """Return ``variables_initializer(var_list)``, of which this is the old name."""
    return variables_initializer(var_list, name)


def _known_variables() -> list[Variable]:
    return list(dict.fromkeys([*global_variables(), *local_variables()]))


def assert_variables_initialized(var_list: Iterable[Variable] | None = None) -> Tensor | None:
    """Return a tensor that fails to be computed where variables have no value, naming them.

    Args:
        var_list: The variables; all global and local ones of the default graph if None.

    Returns:
        The number of dimensions of the variable, or [n], that of each; int32. None where there are
        no variables.
    """
    variables = _known_variables() if var_list is None else items(var_list, "var_list")
    if not variables:
        return None
    values = [v.value() for v in variables]
    with control_dependencies(values):
        ranks = [rank(value) for value in values]
        return ranks[0] if len(ranks) == 1 else stack(ranks)
