"""The structure of an element: what its components are, and how they nest.

Tuples, named tuples and dicts nest; anything else is a component, lists too, which become tensors.
A component is a tensor, a sparse tensor (three tensors, flat), a ragged tensor (its flat values and
the splits of each ragged axis), a ``TensorArray`` (one list) or a data set (one handle).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeAlias, final

import headrace as hr
from headrace import DType, Shape, Tensor, TensorShape
from headrace.errors import DTypeError, ShapeError, StructureError, shown
from headrace.extend import TensorSpec
from headrace.extend.arguments import items
from headrace_data.components import ArrayComponent as ArrayComponent
from headrace_data.components import Composed, OwnSpec
from headrace_data.components import RaggedComponent as RaggedComponent
from headrace_data.components import SparseComponent as SparseComponent
from headrace_data.components import TensorComponent as TensorComponent
from headrace_data.nesting import check_same as check_same
from headrace_data.nesting import describe as describe
from headrace_data.nesting import is_nested as is_nested
from headrace_data.nesting import leaves as leaves
from headrace_data.nesting import leaves_up_to as leaves_up_to
from headrace_data.nesting import map_structure as map_structure
from headrace_data.nesting import rebuild as rebuild
from headrace_data.nesting import same
from headrace_data.options import Options


class Described:
    """What is known of a data set in a graph; programs see it as ``hr.data.Dataset``.

    Attributes:
        variant: The handle that stands for it in the graph.
        spec: The structure of its elements.
        inputs: The data sets that it was made of.
        face: The class that programs see, which has the transformations.
    """

    face: ClassVar[type[Described]]
    _options: Options | None = None

    def __init__(self, variant: Tensor, spec: Any, inputs: Sequence[Described] = ()) -> None:
        """Take a handle as a data set; programs use the methods that make one.

        Args:
            variant: The handle.
            spec: The structure of the elements.
            inputs: The data sets that it was made of.
        """
        self.variant = variant
        self.spec = spec
        self.inputs = tuple(items(inputs, "inputs"))

    def options(self) -> Options:
        """Return the options of the data set and of those that it is made of.

        Raises:
            AttributeValueError: if one is set to different values.
        """
        found, waiting, seen = Options(), [self], {id(self)}
        # Each data set once, though it may be in many others.
        while waiting:
            dataset = waiting.pop()
            given = dataset._options  # noqa: SLF001 - another of this class
            found = found if given is None else found.merge(given)
            new = [source for source in dataset.inputs if id(source) not in seen]
            seen.update(map(id, new))
            waiting += new
        return found


@final
class DatasetSpec(OwnSpec):
    """A component that is a data set, or a batch of data sets."""

    __slots__ = ("_dataset_shape", "_element_spec")

    @property
    def kind(self) -> str:
        """What it is."""
        return "dataset"

    def __init__(self, element_spec: Any, dataset_shape: Any = ()) -> None:
        """State the elements.

        Args:
            element_spec: The structure of the elements.
            dataset_shape: The shape of a batch; without dimensions for one data set.
        """
        self._element_spec = element_spec
        self._dataset_shape = TensorShape(dataset_shape)

    @staticmethod
    def from_value(value: Any) -> DatasetSpec:
        """Return the spec of a data set.

        Args:
            value: The data set.

        Raises:
            DTypeError: if it is none.
        """
        if not isinstance(value, Described):
            raise DTypeError(f"expected a data set, got {shown(value)}")
        return DatasetSpec(specs_of(value.spec), value.variant.shape)

    @property
    def value_type(self) -> Any:
        """The class of the values."""
        return Described.face

    @property
    def element_spec(self) -> Any:
        """The structure of its elements."""
        return self._element_spec

    @property
    def dataset_shape(self) -> Any:
        """The shape of a batch; without dimensions for one data set."""
        return self._dataset_shape

    def facts(self) -> tuple[Any, ...]:
        """Return what this states, in the order of the arguments of its class."""
        return self._element_spec, self._dataset_shape

    def _key(self) -> tuple[Any, ...]:
        inside = self._element_spec
        return describe(inside), tuple(leaves(inside)), self._dataset_shape.plain.dims

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Return whether a data set, or one of another spec, may be of this one.

        Args:
            spec_or_value: A spec, or a value.
        """
        other = spec_or_value
        if isinstance(other, Described):
            other = DatasetSpec.from_value(other)
        return (
            isinstance(other, DatasetSpec)
            and self._dataset_shape.is_compatible_with(other.dataset_shape)
            and compatible(self._element_spec, other.element_spec)
        )

    @property
    def dtype(self) -> Any:
        """The dtypes of its elements, in their structure."""
        return dtypes_of(self._element_spec)

    @property
    def shape(self) -> Any:
        """The shapes of its elements, in their structure."""
        return shapes_of(self._element_spec)

    @property
    def value_class(self) -> Any:
        """What stands for its class: the spec itself, as in TensorFlow."""
        return self

    def told(self) -> DatasetSpec:
        """Return it as programs see it."""
        return DatasetSpec(specs_of(self._element_spec), self._dataset_shape)

    def as_component(self) -> DatasetSpec:
        """Return it as pipelines have it."""
        return DatasetSpec(from_specs(self._element_spec), self._dataset_shape)

    def common(self, other: Any, what: str) -> DatasetSpec:
        """Return what it has in common with another one."""
        shapes = (as_shape(spec.dataset_shape.plain) for spec in (self, other))
        inside = common(self._element_spec, other.element_spec, what)
        return DatasetSpec(inside, most_specific(*shapes))

    def batch(self, size: int | None) -> DatasetSpec:
        """Return what several of it make."""
        return DatasetSpec(self._element_spec, TensorShape([size]).concatenate(self._dataset_shape))

    def row(self, what: str) -> DatasetSpec:
        """Return what its rows are.

        Raises:
            DTypeError: if it is one data set.
        """
        shape = self._dataset_shape
        if shape.rank == 0:
            raise DTypeError(f"{what}: elements that are data sets have no rows")
        return DatasetSpec(self._element_spec, None if shape.rank is None else shape[1:])

    def specs(self) -> list[TensorSpec]:
        """Return the specs of the tensors that it is made of."""
        return [TensorSpec(hr.resource, self._dataset_shape.plain)]

    def pack(self, tensors: Sequence[Any]) -> Any:
        """Return the value that tensors make."""
        return Described.face(tensors[0], self._element_spec)


def compatible(one: Any, other: Any) -> bool:
    """Return whether values of one structure may be of another."""
    if not same(one, other):
        return False
    pairs = zip(*(leaves(specs_of(from_specs(spec))) for spec in (one, other)), strict=True)
    return all(mine.is_compatible_with(theirs) for mine, theirs in pairs)


Plain: TypeAlias = TensorComponent | SparseComponent | RaggedComponent | ArrayComponent
Component: TypeAlias = Plain | OwnSpec


# -- what is known of elements


def flat_specs(element: Any) -> list[TensorSpec]:
    """Return the specs of all tensors that an element is made of."""
    return [spec for component in leaves(element) for spec in component.specs()]


def widths(element: Any) -> tuple[int, ...]:
    """Return of how many tensors each component is made."""
    return tuple(len(component.specs()) for component in leaves(element))


def kinds(element: Any) -> tuple[str, ...]:
    """Return the kind of each component."""
    return tuple(component.kind for component in leaves(element))


def dtypes_of(element: Any) -> Any:
    """Return the dtypes of an element's components, in its structure; specs of data sets."""
    return map_structure(lambda c: _spec(c) if isinstance(c, OwnSpec) else c.dtype, element)


def shapes_of(element: Any) -> Any:
    """Return the shapes of an element's components, in its structure; specs of data sets."""

    def shape(c: Component) -> Any:
        return _spec(c) if isinstance(c, OwnSpec) else TensorShape(c.shape)

    return map_structure(shape, element)


def classes_of(element: Any) -> Any:
    """Return the classes of an element's components, in its structure; specs of data sets."""
    return map_structure(lambda c: _spec(c) if isinstance(c, OwnSpec) else c.value_class, element)


def specs_of(element: Any) -> Any:
    """Return what programs are told of an element's components, in its structure."""
    return map_structure(_spec, element)


def _spec(component: Component) -> Any:
    if isinstance(component, OwnSpec):
        return component.told()
    if isinstance(component, RaggedComponent | ArrayComponent):
        return component.spec
    kind = hr.TensorSpec if isinstance(component, TensorComponent) else hr.SparseTensorSpec
    return kind(TensorShape(component.shape), component.dtype)


def from_specs(specs: Any) -> Any:
    """Return the structure of elements that programs state with specs, or with components.

    Raises:
        DTypeError: if something in it is no spec.
    """

    def component(spec: Any) -> Component:
        if isinstance(spec, TensorComponent | SparseComponent | RaggedComponent | ArrayComponent):
            return spec
        if isinstance(spec, OwnSpec):
            return spec.as_component()
        if isinstance(spec, hr.TensorSpec):
            return TensorComponent(spec.dtype, as_shape(spec.shape))
        if isinstance(spec, hr.SparseTensorSpec):
            return SparseComponent(spec.dtype, as_shape(spec.shape))
        if isinstance(spec, hr.RaggedTensorSpec):
            return _ragged(spec)
        if isinstance(spec, hr.TensorArraySpec):
            return _array(spec)
        raise DTypeError(f"expected an hr.TensorSpec or the like, got {shown(spec)}")

    return map_structure(component, specs)


def _ragged(spec: Any) -> RaggedComponent:
    shape, dtype, ragged_rank, splits_dtype = spec.facts()
    return RaggedComponent(dtype, as_shape(shape), ragged_rank, splits_dtype)


def _array(spec: Any) -> ArrayComponent:
    shape, dtype, dynamic_size, infer_shape = spec.facts()
    return ArrayComponent(dtype, as_shape(shape), dynamic_size, infer_shape)


def pack_tensors(element: Any, tensors: Sequence[Any]) -> Any:
    """Return the values of an element that tensors make, in its structure."""
    given = iter(tensors)

    def value(component: Component) -> Any:
        return component.pack([next(given) for _ in component.specs()])

    return map_structure(value, element)


def from_legacy(types: Any, shapes: Any = None, classes: Any = None) -> Any:
    """Return the structure of elements that dtypes, shapes and classes state.

    Args:
        types: Dtypes, in the structure of the elements.
        shapes: Shapes in that structure; all unknown if None.
        classes: Classes in that structure; all tensors if None.

    Raises:
        StructureError: if the structures differ.
        DTypeError: if a class is none of components.
    """
    types = map_structure(lambda t: t if isinstance(t, OwnSpec) else hr.as_dtype(t), types)
    if shapes is None:
        shapes = map_structure(lambda _: None, types)
    if classes is None:
        classes = map_structure(lambda _: hr.Tensor, types)
    check_same(types, classes, "output_classes")

    def component(dtype: DType, of: Any, shape: Any) -> Component:
        if isinstance(of, OwnSpec):
            return of.as_component()
        if isinstance(of, hr.RaggedTensorSpec):
            return _ragged(of)
        if isinstance(of, hr.TensorArraySpec):
            return _array(of)
        if of is hr.SparseTensor:
            return SparseComponent(dtype, as_shape(shape))
        if of is hr.Tensor:
            return TensorComponent(dtype, as_shape(shape))
        raise DTypeError(f"a component is an hr.Tensor or an hr.SparseTensor, got {shown(of)}")

    return map_structure(component, types, classes, like(types, shapes, "output_shapes"))


def like(structure: Any, shapes: Any, what: str) -> Any:
    """Return shapes in the structure of an element, in which they may be lists and tuples."""
    if not is_nested(structure):
        return None if isinstance(shapes, OwnSpec) else as_shape(shapes)
    if isinstance(structure, Mapping):
        if not isinstance(shapes, Mapping) or set(items(shapes, what)) != set(structure):
            raise StructureError(f"{what}: expected one for each of {describe(structure)}")
        made = {key: like(structure[key], shapes[key], what) for key in structure}
        return type(structure)(made.items())  # type: ignore[call-arg]
    if not isinstance(shapes, list | tuple) or len(shapes) != len(structure):
        raise StructureError(
            f"{what}: expected one for each of {describe(structure)}, got {shown(shapes)}"
        )
    parts = [like(s, given, what) for s, given in zip(structure, shapes, strict=True)]
    return type(structure)(*parts) if hasattr(structure, "_fields") else tuple(parts)


def as_shape(shape: Any) -> Shape:
    """Return a shape as ``hr.Shape``."""
    return shape if isinstance(shape, Shape) else Shape(shape)


def contents_of(specs: Sequence[TensorSpec]) -> tuple[TensorSpec, ...]:
    """Return what those of some tensors that are lists hold."""
    return tuple(spec.content for spec in specs if spec.dtype.kind == "list" and spec.content)


# -- values in a graph


def to_components(value: Any) -> tuple[Any, list[Any]]:
    """Return the structure of an element made of values, and its tensors, flat.

    Args:
        value: Tensors and what converts to them, sparse tensors, data sets, nested.
    """
    tensors: list[Any] = []

    def component(item: Any) -> Component:
        if isinstance(item, Described):
            tensors.append(item.variant)
            return DatasetSpec(item.spec, item.variant.shape)
        if isinstance(item, Composed):
            tensors.extend(item.flatten())
            return item.component()
        if isinstance(item, hr.SparseTensorValue):
            item = hr.SparseTensor.from_value(item)
        if isinstance(item, hr.SparseTensor):
            tensors.extend(item.flatten())
            return SparseComponent(item.dtype, item.shape.plain)
        if isinstance(item, hr.ragged.RaggedTensorValue):
            item = hr.RaggedTensor.from_nested_row_splits(
                item.flat_values, item.nested_row_splits, validate=False
            )
        if isinstance(item, hr.RaggedTensor):
            tensors.extend(item.flatten())
            return _ragged(hr.RaggedTensorSpec.from_value(item))
        if isinstance(item, hr.TensorArray):
            tensors.append(item.flow)
            return _array(hr.TensorArraySpec.from_value(item))
        if isinstance(item, hr.Operation) or item is None:
            raise DTypeError(
                f"a component of an element is a tensor or data set, got {shown(item)}"
            )
        tensor = hr.convert_to_tensor(item)
        tensors.append(tensor)
        return TensorComponent(tensor.dtype, tensor.spec.shape)

    return map_structure(component, value), tensors


def common(left: Any, right: Any, what: str) -> Any:
    """Return what two structures of elements have in common: shapes become less known.

    Raises:
        DTypeError: if the dtypes or the kinds of components differ.
        StructureError: if the structures do.
    """
    check_same(left, right, what)

    def component(a: Component, b: Component) -> Component:
        if isinstance(a, OwnSpec) and a.kind == b.kind:
            return a.common(b, what)
        if isinstance(a, OwnSpec) or isinstance(b, OwnSpec):
            raise DTypeError(f"{what}: expected {_told(a)}, got {_told(b)}")
        if a.kind != b.kind or a.dtype != b.dtype:
            raise DTypeError(f"{what}: expected {_told(a)}, got {_told(b)}")
        return a.with_shape(most_specific(a.shape, b.shape))

    return map_structure(component, left, right)


def _told(component: Component) -> str:
    if isinstance(component, OwnSpec):
        return repr(component.told())
    name = "" if component.kind == "tensor" else f"{component.kind} "
    return f"{name}{component.dtype}"


def most_specific(left: Shape, right: Shape) -> Shape:
    """Return the most specific shape that both are."""
    if left.rank is None or left.rank != right.rank:
        return Shape(None)
    pairs = zip(left.as_list(), right.as_list(), strict=True)
    return Shape([a if a == b else None for a, b in pairs])


def batched(element: Any, size: int | None) -> Any:
    """Return the structure of elements that have a new first axis."""

    def component(c: Component) -> Component:
        if isinstance(c, OwnSpec):
            return c.batch(size)
        return c.batched(Shape([size]).concatenate(c.shape))

    return map_structure(component, element)


def unbatched(element: Any, what: str) -> Any:
    """Return the structure of the rows of elements.

    Raises:
        ShapeError: if a component has no first axis, or they are known to have different ones.
    """

    def component(c: Component) -> Component:
        if isinstance(c, OwnSpec):
            return c.row(what)
        if c.shape.rank == 0:
            raise ShapeError(f"{what}: components need a first axis, got a scalar")
        return c.row(Shape(None) if c.shape.rank is None else c.shape[1:])

    rows = map_structure(component, element)
    shapes = [c.specs()[0].shape if isinstance(c, OwnSpec) else c.shape for c in leaves(element)]
    sizes = {shape[0] for shape in shapes if shape.rank is not None} - {None}
    if len(sizes) > 1:
        raise ShapeError(
            f"{what}: components have different numbers of rows: {sorted(sizes)}, expected one "
            "number for all"
        )
    return rows
