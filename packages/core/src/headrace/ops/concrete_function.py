"""One trace of a function, which is called with tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

from headrace.errors import ArgumentTypeError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.function import Function
from headrace.graph.structure import flatten, pack
from headrace.graph.tensor import Tensor


@final
class ConcreteFunction:
    """A function of tensors of certain dtypes and shapes, as ``get_concrete_function`` returns it.

    Attributes:
        graph: What is inside of it.
    """

    def __init__(
        self,
        graph: Function,
        structure: Any,
        names: Sequence[str],
        call: Callable[[list[Tensor]], Any],
    ) -> None:
        """Take a trace.

        Args:
            graph: The trace.
            structure: What it returns.
            names: The names of its arguments, empty where one has none.
            call: Adds a call with tensors to the default graph.
        """
        self.graph = graph
        self._structure = structure
        self._names = list(names)
        self._call = call

    @property
    def name(self) -> str:
        """Its name."""
        return self.graph.name

    @property
    def inputs(self) -> list[Tensor]:
        """Its parameters, and what stands inside for tensors from outside."""
        return list(self.graph.parameters)

    @property
    def captured_inputs(self) -> list[Tensor]:
        """The tensors from outside that it takes with every call."""
        return list(self.graph.inputs)

    @property
    def outputs(self) -> list[Tensor]:
        """Its results, as tensors inside of it."""
        return list(self.graph.results) if self._structure is not None else []

    @property
    def structured_outputs(self) -> Any:
        """Its results in the structure in which the function returns them."""
        return self._of_outputs(lambda tensor: tensor)

    @property
    def output_dtypes(self) -> Any:
        """The dtypes of its results, in their structure."""
        return self._of_outputs(lambda tensor: tensor.dtype)

    @property
    def output_shapes(self) -> Any:
        """The static shapes of its results, in their structure."""
        return self._of_outputs(lambda tensor: tensor.shape)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Add a call to the default graph.

        Args:
            args: Tensors or variables, one for each argument that was no constant.
            kwargs: The rest of them by name.

        Returns:
            What the function returns.

        Raises:
            ArgumentTypeError: if there are more or fewer, or one is no tensor.
            DTypeError: if one is of another dtype.
            ShapeError: if one is of another shape.
        """
        given = list(args)
        for name in self._names[len(args) :]:
            if name not in kwargs:
                break
            given.append(kwargs.pop(name))
        if len(given) != len(self._names) or kwargs:
            names = [name or "a tensor" for name in self._names]
            raise ArgumentTypeError(
                f"{self.name!r} takes {len(names)} tensors, {', '.join(names) or 'none'}; got "
                f"{len(given)}" + "".join(f", and {name!r} besides" for name in sorted(kwargs))
            )
        for value in given:
            if not isinstance(value, Tensor) and not hasattr(value, "_as_tensor"):
                raise ArgumentTypeError(
                    f"{self.name!r} is called with tensors alone, got {shown(value)}"
                )
        return self._call([convert_to_tensor(value) for value in given])

    def __repr__(self) -> str:
        return f"<headrace concrete function {self.name!r}>"

    def _of_outputs(self, function: Callable[[Tensor], Any]) -> Any:
        if self._structure is None:
            return None
        left = iter(self.outputs)
        leaves = flatten(self._structure)
        return pack(
            self._structure, [None if leaf is None else function(next(left)) for leaf in leaves]
        )
