"""``hr.function``: Python functions that are traced once, and called like an op."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from headrace.arguments import items
from headrace.errors import GraphError
from headrace.graph.function import Function, graphs_around
from headrace.graph.scopes import control_dependencies, current_scope, inside, name_scope
from headrace.graph.structure import flatten, pack
from headrace.graph.tensor import Tensor
from headrace.ops.concrete_function import ConcreteFunction
from headrace.ops.function import call_function, result_tensors
from headrace.ops.function_arguments import (
    Stated,
    argument,
    by_signature,
    key,
    names_of_tensors,
    signed,
    stands_for_tensor,
    stated,
)
from headrace.ops.program_order import in_order
from headrace.specs.tensor_spec import TensorSpec as PublicSpec


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
            else [signed(s) for s in items(input_signature, "input_signature")]
        )
        self._traces: dict[Any, list[tuple[Function, Any]]] = {}
        self._tracing = False
        functools.update_wrapper(self, python_function)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else _Method(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Add a call to the default graph.

        Args:
            args: Tensors, arrays and variables are passed on; anything else is a constant of the
                trace, by its value. What the signature states is made a tensor.
            kwargs: The same.

        Returns:
            The structure of tensors that the function returns, None where it has None; of a
            function that returns None alone the operation.

        Raises:
            ArgumentTypeError: if the function does not take the arguments, or one makes no tensor
                of the dtype that the signature states.
            GraphError: if the function calls itself, or returns what is no tensor.
        """
        return self.call((), args, kwargs)

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """Return the trace for some arguments, which is called with tensors alone.

        Args:
            args: As in a call; ``hr.TensorSpec`` stands for a tensor. With a signature there may be
                none.
            kwargs: The same.

        Raises:
            ArgumentTypeError: if the function does not take the arguments.
            GraphError: if the function calls itself, or returns what is no tensor.
        """
        return self.concrete((), args, kwargs)

    def call(self, bound: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Add a call; ``bound`` holds the object of a method."""
        with name_scope(self.name.lstrip("_") or "function"):
            args, kwargs = self._ordered(bound, args, kwargs)
            flat = flatten((args, kwargs))
            tensors = [argument(item) for item in flat]
            function, structure = self._known((args, kwargs), flat, tensors)
            given = [t for t in tensors if t is not None]
            return self._called(function, structure, given)

    def concrete(
        self, bound: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> ConcreteFunction:
        """Return the trace; ``bound`` holds the object of a method."""
        if self._signature is not None and not (args or kwargs):
            args = tuple(PublicSpec(spec.shape, spec.dtype) for spec in self._signature)
        args, kwargs = self._ordered(bound, args, kwargs)
        flat = flatten((args, kwargs))
        tensors = [stated(item) for item in flat]
        function, structure = self._known((args, kwargs), flat, tensors)
        return ConcreteFunction(
            function,
            structure,
            names_of_tensors(self.python_function, args, kwargs),
            lambda given: self._called(function, structure, given),
        )

    def _called(self, function: Function, structure: Any, given: Sequence[Tensor]) -> Any:
        with control_dependencies(list(function.waits_for)):
            results = call_function([*given, *function.inputs], function=function, name="call")
        if structure is None:
            return results[0].op
        left = iter(results)
        leaves = flatten(structure)
        return pack(structure, [None if leaf is None else next(left) for leaf in leaves])

    def _ordered(
        self, bound: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments in the order of the signature, where there is one."""
        if self._signature is None:
            return (*bound, *args), kwargs
        places = sum(map(stands_for_tensor, flatten(args)))
        if places < len(self._signature) or any(map(stands_for_tensor, flatten(kwargs))):
            function = functools.partial(self.python_function, *bound)
            args, kwargs = by_signature(function, self.name, self._signature, args, kwargs)
        return (*bound, *args), kwargs

    def _known(
        self, structure: Any, flat: Sequence[Any], tensors: Sequence[Tensor | Stated | None]
    ) -> tuple[Function, Any]:
        """Return the trace for some arguments, and what it returns."""
        graph = current_scope().graph
        if self._signature is not None:
            self._check(tensors)
        signature = self._signature is not None
        parts = [key(item, t, signature) for item, t in zip(flat, tensors, strict=True)]
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
            known = self._trace(structure, flat, tensors)
            traces.append(known)
        return known

    def _check(self, tensors: Sequence[Tensor | Stated | None]) -> None:
        assert self._signature is not None
        present = [t for t in tensors if t is not None]
        if len(present) != len(self._signature):
            raise GraphError(
                f"{self.name!r} takes {len(self._signature)} tensors by its input_signature, got "
                f"{len(present)}"
            )
        for i, (tensor, spec) in enumerate(zip(present, self._signature, strict=True)):
            if tensor.dtype != spec.dtype or not tensor.spec.shape.is_compatible_with(spec.shape):
                raise GraphError(
                    f"argument {i} of {self.name!r} is {spec} by its input_signature, got "
                    f"{tensor.spec}"
                )

    def _trace(
        self, structure: Any, flat: Sequence[Any], tensors: Sequence[Tensor | Stated | None]
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


class _Method:
    """A traced function with the object of which it is a method."""

    def __init__(self, traced: TracedFunction, instance: Any) -> None:
        self._traced = traced
        self.__self__ = instance
        functools.update_wrapper(self, traced.python_function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Add a call to the default graph; see ``TracedFunction``."""
        return self._traced.call((self.__self__,), args, kwargs)

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """Return the trace for some arguments; see ``TracedFunction``."""
        return self._traced.concrete((self.__self__,), args, kwargs)


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
