"""Functions: traced once, and called like an op."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from headrace import dtypes
from headrace.errors import DTypeError, GraphError, ShapeError, shown
from headrace.given import items
from headrace.graph.convert import convert_to_tensor
from headrace.graph.function import Function, graphs_around
from headrace.graph.operation import Operation
from headrace.graph.scopes import control_dependencies, current_scope, inside, name_scope
from headrace.graph.spec import TensorSpec, list_spec
from headrace.graph.structure import flatten, pack
from headrace.graph.tensor import Tensor
from headrace.ops.array import identity
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Value
from headrace.ops.program_order import in_order

_OF_FUNCTION = "it belongs to a function; what holds the function has the gradient"


@op("Parameter", effects="observes", builtin=True, public="", no_gradient=_OF_FUNCTION)
def parameter(index: int, spec: TensorSpec) -> Spec:
    """An argument of the function in which it stands.

    Args:
        index: Which of its arguments.
        spec: What is known of it.

    Returns:
        The shape and dtype that ``spec`` states.
    """
    return TensorSpec(spec.dtype, spec.shape, content=spec.content)


@op("Return", effects="changes", builtin=True, public="", no_gradient=_OF_FUNCTION)
def return_(value: Value, index: int) -> None:
    """A result of the function in which it stands.

    Args:
        value: Anything.
        index: Which of its results.
    """


@op("Call", builtin=True, public="")
def call_function(
    inputs: Sequence[Value] = (),
    *,
    function: Function,
    saves: tuple[str, ...] = (),
    run: str = "",
) -> list[Spec]:
    """The results of a function.

    Args:
        inputs: Its arguments.
        function: What to call.
        saves: Names of tensors of the function that are wanted besides, for its gradient.
        run: The operation of whose one run this is another view; empty where it stands for itself.

    Returns:
        What it returns, and what ``saves`` names.
    """
    check_arguments(inputs, function)
    wanted = [*function.results, *(function.get_tensor_by_name(name) for name in saves)]
    return [TensorSpec(t.dtype, t.spec.shape, content=t.spec.content) for t in wanted]


def check_arguments(inputs: Sequence[TensorSpec], function: Function) -> None:
    """Refuse arguments that do not fit the parameters of a function.

    Raises:
        GraphError: if there are more or fewer.
        DTypeError: if the dtype of one differs.
        ShapeError: if its shape does not fit.
    """
    if len(inputs) != len(function.parameters):
        raise GraphError(
            f"{function.name!r} takes {len(function.parameters)} arguments, got {len(inputs)}"
        )
    for i, (given, wanted) in enumerate(zip(inputs, function.parameters, strict=True)):
        if given.dtype != wanted.dtype:
            raise DTypeError(
                f"argument {i} of {function.name!r} is {wanted.dtype}, got {given.dtype}"
            )
        if not given.shape.is_compatible_with(wanted.spec.shape):
            raise ShapeError(
                f"argument {i} of {function.name!r} has shape {wanted.spec.shape}, got "
                f"{given.shape}"
            )


def saved_lists(function: Function, saves: Sequence[str]) -> list[TensorSpec]:
    """Return the specs of the lists that hold what runs of a function computed inside."""
    tensors = [function.get_tensor_by_name(name) for name in saves]
    return [list_spec(TensorSpec(t.dtype, t.spec.shape, content=t.spec.content)) for t in tensors]


def trace(
    function: Function, build: Callable[..., Any], arguments: Sequence[Any]
) -> tuple[Any, list[Any]]:
    """Build the inside of a function; return the structure of what it returns, and that flat."""
    with inside(function):
        structure = build(*arguments)
        return structure, flatten(structure)


def result_tensors(flat: Sequence[Any], what: str, done: bool = False) -> list[Tensor]:
    """Return what the inside of a function returns as tensors of its graph.

    Args:
        flat: What it returns.
        what: The function, for messages.
        done: The value of the tensor that stands for an operation, once that has finished.

    Raises:
        GraphError: if something is no tensor, operation, or data.
    """
    results = []
    for item in flat:
        if isinstance(item, Operation):
            with control_dependencies([item]):
                results.append(identity(convert_to_tensor(done), name="done"))
        elif item is None:
            raise GraphError(f"{what} returned None; return tensors")
        else:
            results.append(convert_to_tensor(item))
    return results


class TracedFunction:
    """A Python function that adds one ``Call`` to the graph where it is called.

    It is traced once for each combination of dtypes and static shapes of its tensor arguments, and
    of the values of its other arguments.
    """

    def __init__(
        self,
        python_function: Callable[..., Any],
        input_signature: Sequence[Any] | None = None,
        name: str | None = None,
    ) -> None:
        self.python_function = python_function
        self.name = name or getattr(python_function, "__name__", "function").strip("<>")
        self._signature = (
            None
            if input_signature is None
            else [_signed(s) for s in items(input_signature, "input_signature")]
        )
        self._traces: dict[Any, list[tuple[Function, Any]]] = {}
        self._tracing = False
        functools.update_wrapper(self, python_function)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Add a call to the default graph.

        Args:
            args: Tensors, arrays and variables are passed on; anything else is a constant of the
                trace, by its value.
            kwargs: The same.

        Returns:
            The structure of tensors that the function returns, None where it has None; of a
            function that returns None alone the operation.

        Raises:
            GraphError: if the function calls itself, or returns what is no tensor.
        """
        flat = flatten((args, kwargs))
        with name_scope(self.name.lstrip("_") or "function"):
            tensors = [_argument(item) for item in flat]
            graph = current_scope().graph
            if self._signature is not None:
                self._check(tensors)
            stated = self._signature is not None
            parts = [_key(item, t, stated) for item, t in zip(flat, tensors, strict=True)]
            # What applies to operations made now applies to those of the trace.
            scope = replace(
                current_scope(),
                graph=graph.outermost,
                name="",
                control_inputs=(),
                outer_waits=(),
                colocated_with=(),
            )
            traces = self._traces.setdefault((scope, *parts), [])
            # One that takes tensors of a branch or body can be called there alone.
            here = {graph, *graphs_around(graph)}
            known = next((t for t in traces if t[0].outer in here), None)
            if known is None:
                known = self._trace((args, kwargs), flat, tensors)
                traces.append(known)
            function, structure = known
            given = [t for t in tensors if t is not None]
            with control_dependencies(list(function.waits_for)):
                results = call_function([*given, *function.inputs], function=function, name="call")
            if structure is None:
                return results[0].op
            left = iter(results)
            leaves = flatten(structure)
            return pack(structure, [None if leaf is None else next(left) for leaf in leaves])

    def _check(self, tensors: Sequence[Tensor | None]) -> None:
        assert self._signature is not None
        present = [t for t in tensors if t is not None]
        if len(present) != len(self._signature):
            raise GraphError(
                f"{self.name!r} takes {len(self._signature)} tensors by its input_signature, got "
                f"{len(present)}"
            )
        for i, (tensor, spec) in enumerate(zip(present, self._signature, strict=True)):
            if tensor.dtype != spec.dtype or not tensor.shape.is_compatible_with(spec.shape):
                raise GraphError(
                    f"argument {i} of {self.name!r} is {spec} by its input_signature, got "
                    f"{tensor.spec}"
                )

    def _trace(
        self, structure: Any, flat: Sequence[Any], tensors: Sequence[Tensor | None]
    ) -> tuple[Function, Any]:
        if self._tracing:
            raise GraphError(
                f"{self.name!r} calls itself while it is traced, which would never end; write the "
                "repetition with hr.while_loop"
            )
        function = Function(self.name, current_scope().graph)
        function.traced = True
        specs = iter(self._signature or [t.spec for t in tensors if t is not None])
        self._tracing = True
        try:
            with inside(function):
                inner = [
                    item if t is None else function.add_parameter(next(specs))
                    for item, t in zip(flat, tensors, strict=True)
                ]
                args, kwargs = pack(structure, inner)
                returned = self.python_function(*args, **kwargs)
                # Without a result, there is one that tells when all is done.
                flat = [True] if returned is None else flatten(returned)
                given = [item for item in flat if item is not None]
                results = result_tensors(given or [True], f"{self.name!r}")
                function.finish(in_order(function, results))
        finally:
            self._tracing = False
        function.move_out()
        return function, returned

    def __repr__(self) -> str:
        return f"<headrace function {self.name!r}>"


def function(
    func: Callable[..., Any] | None = None,
    input_signature: Sequence[Any] | None = None,
    autograph: bool = False,
    name: str | None = None,
) -> Any:
    """Make a Python function that is traced once and then called like an op, with gradient.

    As a decorator, plain or with arguments. A call adds a single node, whose inside is the traced
    sub-graph; what the function captures, variables too, is passed in. Everything in it that
    changes state runs with every call. What uses one variable, queue or table, and what prints or
    calls Python, happens in the order of the program, in its conditions and loops, too.

    Args:
        func: A function of tensors, and of Python values that are constants of the trace.
        input_signature: Pairs (shape, dtype), or objects with these attributes, one for each
            tensor: one trace then serves all calls that fit.
        autograph: Not there: Python's ``if`` and ``while`` are not translated.
        name: What to call it; the function's own name if None.

    Returns:
        The function made, or a decorator.

    Raises:
        GraphError: if ``autograph`` is asked for, or ``input_signature`` holds something else.
    """
    if autograph:
        raise GraphError(
            "function: there is no autograph; write conditions and loops with hr.cond and "
            "hr.while_loop"
        )
    if func is None:
        return lambda f: TracedFunction(f, input_signature, name)
    return TracedFunction(func, input_signature, name)


def _signed(item: Any) -> TensorSpec:
    if hasattr(item, "dtype") and hasattr(item, "shape"):
        shape, dtype = item.shape, item.dtype
    elif isinstance(item, list | tuple) and len(item) == 2:
        shape, dtype = item
    else:
        raise GraphError(
            "input_signature: expected pairs of shape and dtype, or objects with these "
            f"attributes, got {shown(item)}"
        )
    return TensorSpec(dtypes.as_dtype(dtype), TensorSpec(dtypes.float32).with_shape(shape).shape)


def _argument(item: Any) -> Tensor | None:
    """Return an argument as a tensor, None where it is a constant of the trace."""
    if item is None or isinstance(item, bool | int | float | str | bytes):
        return None
    if isinstance(item, Tensor) or hasattr(item, "_as_tensor") or hasattr(item, "__array__"):
        return convert_to_tensor(item)
    return None


def _key(item: Any, tensor: Tensor | None, stated: bool) -> Any:
    """Return what a trace depends on; nothing of a tensor whose spec a signature states."""
    if tensor is None:
        return (type(item), item)
    return () if stated else (tensor.dtype, tensor.spec.shape)
