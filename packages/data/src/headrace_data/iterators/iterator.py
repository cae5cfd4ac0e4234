"""Iterators: which element of a data set is next, and getting it in steps."""

from __future__ import annotations

from typing import Any

import headrace as hr
from headrace import Operation, Tensor
from headrace.errors import DTypeError, GraphError, shown
from headrace.extend.graphs import current_scope, get_default_graph
from headrace_data import structure
from headrace_data.components import OwnSpec
from headrace_data.errors import NoInitializerError
from headrace_data.iterators.oneshot import factory
from headrace_data.ops.pipelines import (
    iterator as iterator_op,
)
from headrace_data.ops.pipelines import (
    iterator_from_string,
    iterator_get_next,
    iterator_to_string,
    make_iterator,
)
from headrace_data.transformations.ordering import as_allowed


class Iterator:
    """A position among the elements of a data set.

    Each run of what ``get_next`` returns moves on by one. At the end, and from then on, such steps
    raise ``errors.OutOfRangeError``. Any number of threads may run them.

    Attributes:
        resource: The handle.
        spec: The structure of the elements.
    """

    def __init__(
        self,
        iterator_resource: Tensor,
        initializer: Operation | None,
        output_types: Any,
        output_shapes: Any,
        output_classes: Any,
    ) -> None:
        """Take a handle as an iterator; programs use the functions that make one.

        Args:
            iterator_resource: The handle.
            initializer: The operation that starts it, None where it has none.
            output_types: Dtypes, in the structure of the elements.
            output_shapes: Shapes in that structure.
            output_classes: Classes in that structure.
        """
        self.resource = iterator_resource
        self._initializer = initializer
        self.spec = structure.from_legacy(output_types, output_shapes, output_classes)
        self._string_handle: Tensor | None = None

    @staticmethod
    def from_structure(
        output_types: Any,
        output_shapes: Any = None,
        shared_name: str | None = None,
        output_classes: Any = None,
    ) -> Iterator:
        """Return an iterator without a data set, which ``make_initializer`` gives it.

        Args:
            output_types: Dtypes, in the structure of the elements.
            output_shapes: Shapes in that structure; unknown if None.
            shared_name: Its name in its container; a name of its own if None.
            output_classes: Classes in that structure; tensors if None.
        """
        element = structure.from_legacy(output_types, output_shapes, output_classes)
        return _iterator(_handle(element, shared_name), None, element)

    @staticmethod
    def from_string_handle(
        string_handle: Any,
        output_types: Any,
        output_shapes: Any = None,
        output_classes: Any = None,
    ) -> Iterator:
        """Return whichever iterator a string stands for when a step runs.

        Args:
            string_handle: [], string, what ``string_handle()`` of an iterator of the same session
                yielded.
            output_types: Dtypes, in the structure of the elements.
            output_shapes: Shapes in that structure; unknown if None.
            output_classes: Classes in that structure; tensors if None.
        """
        element = structure.from_legacy(output_types, output_shapes, output_classes)
        specs = structure.flat_specs(element)
        resource = iterator_from_string(
            hr.convert_to_tensor(string_handle, hr.string),
            [s.dtype for s in specs],
            [s.shape for s in specs],
            name="IteratorFromStringHandle",
        )
        return _iterator(resource, None, element)

    @property
    def initializer(self) -> Operation:
        """The operation that starts it at the first element.

        Raises:
            NoInitializerError: if it has none: it starts by itself, or gets its data set from
                ``make_initializer``.
        """
        if self._initializer is None:
            raise NoInitializerError(
                "this iterator has no initializer: a one-shot iterator starts by itself, and one "
                "of from_structure is started by what make_initializer returns"
            )
        return self._initializer

    def make_initializer(self, dataset: structure.Described, name: str | None = None) -> Operation:
        """Return an operation that starts the iterator at the first element of a data set.

        Args:
            dataset: A data set whose elements fit the iterator.
            name: The name of the operation.

        Raises:
            GraphError: if the structures differ.
            DTypeError: if dtypes or shapes do.
        """
        _check_fits(self.spec, dataset.spec)
        with hr.name_scope(name, "make_initializer") as scope:
            return _operation(make_iterator(as_allowed(dataset).variant, self.resource, name=scope))

    def get_next(self, name: str | None = None) -> Any:
        """Return the tensors of the next element; every step that needs one of them moves on.

        Call it once and use what it returns in many steps.

        Args:
            name: The name of the operation.
        """
        specs = structure.flat_specs(self.spec)
        flat = iterator_get_next(
            self.resource,
            [s.dtype for s in specs],
            [s.shape for s in specs],
            structure.contents_of(specs),
            name=name or "IteratorGetNext",
        )
        return structure.pack_tensors(self.spec, list(flat))

    def string_handle(self, name: str | None = None) -> Tensor:
        """Return a string that stands for the iterator, to be fed to ``from_string_handle``.

        Args:
            name: The name of the operation.
        """
        if name is None and self._string_handle is not None:
            return self._string_handle
        made: Tensor = iterator_to_string(self.resource, name=name or "IteratorToStringHandle")
        if name is None:
            self._string_handle = made
        return made

    @property
    def element_spec(self) -> Any:
        """What is known of the components, in the structure of the elements."""
        return structure.specs_of(self.spec)

    @property
    def output_types(self) -> Any:
        """The dtypes of the components, in the structure of the elements."""
        return structure.dtypes_of(self.spec)

    @property
    def output_shapes(self) -> Any:
        """The shapes of the components, in the structure of the elements."""
        return structure.shapes_of(self.spec)

    @property
    def output_classes(self) -> Any:
        """The classes of the components, in the structure of the elements."""
        return structure.classes_of(self.spec)

    def __repr__(self) -> str:
        return f"<Iterator {self.resource.op.name!r} of {self.output_types}>"


def make_one_shot_iterator(dataset: structure.Described) -> Iterator:
    """Return an iterator that starts by itself, and goes over the elements of a data set once.

    Args:
        dataset: The data set.

    Raises:
        GraphError: if the data set depends on placeholders, variables or tables.
    """
    _check_graph(dataset)
    handle = _handle(dataset.spec, None, function=factory(as_allowed(dataset).variant))
    return _iterator(handle, None, dataset.spec)


def make_initializable_iterator(
    dataset: structure.Described, shared_name: str | None = None
) -> Iterator:
    """Return an iterator that starts whenever its ``initializer`` runs.

    Args:
        dataset: The data set; placeholders that it depends on are fed to the initializer.
        shared_name: Its name in its container; a name of its own if None.
    """
    _check_graph(dataset)
    handle = _handle(dataset.spec, shared_name)
    start = _operation(make_iterator(as_allowed(dataset).variant, handle, name="MakeIterator"))
    return _iterator(handle, start, dataset.spec)


def _iterator(handle: Tensor, start: Operation | None, element: Any) -> Iterator:
    made = Iterator(
        handle,
        start,
        structure.dtypes_of(element),
        structure.shapes_of(element),
        structure.classes_of(element),
    )
    if handle.op.type == "Iterator":
        # Where what saves a run finds its positions.
        hr.add_to_collection("iterators", made)
    return made


def _handle(element: Any, shared_name: str | None, function: Any = None) -> Tensor:
    specs = structure.flat_specs(element)
    with hr.control_dependencies(None), hr.name_scope("Iterator") as scope:
        made: Tensor = iterator_op(
            [s.dtype for s in specs],
            [s.shape for s in specs],
            current_scope().container,
            scope[:-1] if shared_name is None else shared_name,
            function,
            name="handle",
        )
    return made


def _check_graph(dataset: structure.Described) -> None:
    if not isinstance(dataset, structure.Described):
        raise DTypeError(f"an iterator goes over a data set, got {shown(dataset)}")
    if dataset.variant.graph is not get_default_graph():
        raise GraphError(
            "the data set belongs to another graph than the default one; make its iterator "
            "inside 'with graph.as_default():', outside of functions"
        )


def _check_fits(expected: Any, given: Any) -> None:
    structure.check_same(expected, given, "make_initializer")
    for a, b in zip(structure.leaves(expected), structure.leaves(given), strict=True):
        if a.kind != b.kind or a.dtype != b.dtype:
            raise DTypeError(
                f"make_initializer: expected output types {structure.dtypes_of(expected)!r}, got "
                f"{shown(structure.dtypes_of(given))}"
            )
        if not isinstance(a, OwnSpec) and not a.shape.is_compatible_with(b.shape):
            raise DTypeError(
                f"make_initializer: expected output shapes compatible with "
                f"{structure.shapes_of(expected)!r}, got {shown(structure.shapes_of(given))}"
            )


def _operation(built: Any) -> Operation:
    assert isinstance(built, Operation)
    return built
