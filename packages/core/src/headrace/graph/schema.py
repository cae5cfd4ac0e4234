"""Op schemas, and the process-wide table of the ops that were declared."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.dtypes import DType
from headrace.errors import GraphError, PluginError
from headrace.graph.attributes import canonical
from headrace.graph.spec import TensorSpec, like
from headrace.records import dataclass

if TYPE_CHECKING:
    from headrace.graph.operation import Operation


@dataclass(frozen=True, slots=True)
class Kind:
    """A set of dtypes that an input may have.

    Attributes:
        name: How error messages call it.
        accepts: Whether a dtype belongs to it.
        unify: Whether all inputs of this kind in one op share one dtype.
    """

    name: str
    accepts: Callable[[DType], bool] = field(compare=False)
    unify: bool = True


@dataclass(frozen=True, slots=True)
class InputParam:
    """A tensor parameter of an op.

    Attributes:
        name: Its name.
        kind: The dtypes that it may have.
        variadic: Whether it takes any number of tensors.
        optional: Whether it may be left out.
        least: How many tensors a variadic one takes at least.
    """

    name: str
    kind: Kind
    variadic: bool = False
    optional: bool = False
    least: int = 1


REQUIRED: Any = type("Required", (), {"__repr__": lambda self: "<required>"})()


@dataclass(frozen=True, slots=True)
class AttrParam:
    """An attribute of an op.

    Attributes:
        name: Its name.
        default: Its default, ``REQUIRED`` where it has none.
        convert: Makes what programs may pass, such as ``"float32"``, into what the rule takes.
        hint: The type that the rule states.
    """

    name: str
    default: Any = REQUIRED
    convert: Callable[[Any], Any] | None = field(default=None, compare=False)
    hint: Any = field(default=Any, compare=False)

    def read(self, value: Any) -> Any:
        """Return the canonical form of what a program passes.

        Raises:
            HeadraceError: if there is none.
        """
        if isinstance(value, np.ndarray) and self.hint is not np.ndarray:
            value = value.tolist()
        return canonical(value if self.convert is None else self.convert(value))


@dataclass(frozen=True, slots=True, eq=False)
class OpSchema:
    """All that is stated of an op in its one declaration.

    Attributes:
        type: The op's name in graphs, as in ``"MatMul"``.
        inputs: Its tensor parameters in order.
        attrs: Its attributes in order.
        infer: The rule from input specs (one entry per parameter, a list where variadic, None
            where absent) and attributes to output specs: one, a tuple or list, or None.
        function: What users call to add a node.
        stateful: Reads or changes state, or differs from call to call: never folded or merged.
        blocking: May wait for something outside the step.
        elementwise: Output element ``i`` depends on the elements ``i`` of the broadcast inputs.
        reduction: Folds axes of its first input.
        in_place: Pairs (output, input) that may share memory.
        builtin: The runtime itself runs it, on every device, without a kernel.
        no_gradient: Why the op has no gradient, empty where it should have a rule.
        public: The name under which users find it, as in ``"nn.softmax"``.
        where: Module and line of the declaration.
    """

    type: str
    inputs: tuple[InputParam, ...]
    attrs: tuple[AttrParam, ...]
    infer: Callable[..., Any]
    function: Callable[..., Any]
    stateful: bool = False
    blocking: bool = False
    elementwise: bool = False
    reduction: bool = False
    in_place: tuple[tuple[int, int], ...] = ()
    builtin: bool = False
    no_gradient: str = ""
    public: str = ""
    where: str = ""

    @property
    def doc(self) -> str:
        """What users read of the op, without the indentation of its declaration."""
        return inspect.cleandoc(self.function.__doc__ or "")

    def group(self, flat: tuple[Any, ...] | list[Any], arity: tuple[int, ...]) -> list[Any]:
        """Arrange a node's flat inputs as one entry per parameter."""
        grouped: list[Any] = []
        start = 0
        for param, count in zip(self.inputs, arity, strict=True):
            part = flat[start : start + count]
            if param.variadic:
                grouped.append(list(part))
            else:
                grouped.append(part[0] if count else None)
            start += count
        return grouped

    def output_specs(
        self, specs: list[TensorSpec], arity: tuple[int, ...], attrs: Mapping[str, Any]
    ) -> tuple[tuple[TensorSpec, ...], Any]:
        """Run the rule; return the flat output specs and the rule's own answer."""
        answer = self.infer(*self.group(specs, arity), **attrs)
        if answer is None:
            return (), None
        flat = (answer,) if isinstance(answer, TensorSpec) else tuple(answer)
        # A rule that returns the spec of an input means its dtype and shape, never its value.
        return tuple(_like_input(spec, specs) for spec in flat), answer


def _like_input(spec: TensorSpec, inputs: list[TensorSpec]) -> TensorSpec:
    if spec.value is None and spec.dims is None:
        return spec
    return like(spec) if any(spec is given for given in inputs) else spec


class OpTable:
    """The declared ops by type name; append-only, since an op's name is its identity."""

    def __init__(self) -> None:
        self._schemas: dict[str, OpSchema] = {}
        # The plugin host sets this: lets plugins declare their ops, and tells which ones failed.
        self.declare_more: Callable[[], str] = str

    def add(self, schema: OpSchema) -> None:
        """Add an op.

        Raises:
            PluginError: if another declaration has the name; names both places.
        """
        known = self._schemas.get(schema.type)
        if known is not None and known.where != schema.where:
            raise PluginError(
                f"op {schema.type!r} is declared twice: at {known.where} and at {schema.where}; "
                "rename one of them"
            )
        self._schemas[schema.type] = schema

    def get(self, type_name: str) -> OpSchema | None:
        """Return the schema of a type, or None."""
        return self._schemas.get(type_name)

    def __getitem__(self, type_name: str) -> OpSchema:
        """Return the schema of a type; plugins get the chance to declare it.

        Raises:
            GraphError: if none does.
        """
        schema = self._schemas.get(type_name)
        broken = "" if schema is not None else self.declare_more()
        schema = schema if schema is not None else self._schemas.get(type_name)
        if schema is None:
            raise GraphError(
                f"no op {type_name!r} is declared; if a plugin package declares it, install that "
                "package" + (f"\n{broken}" if broken else "")
            )
        return schema

    def __iter__(self) -> Any:
        return iter(list(self._schemas.values()))

    def __len__(self) -> int:
        return len(self._schemas)


OPS = OpTable()

# Operators of tensors that are compositions rather than ops; ops/ fills it.
OPERATORS: dict[str, Callable[..., Any]] = {}


def call_op(type_name: str, *args: Any, **kwargs: Any) -> Any:
    """Add a node of the op ``type_name`` to the default graph."""
    return OPS[type_name].function(*args, **kwargs)


def describe_inputs(op: Operation) -> str:
    """Return an operation's inputs with dtypes and shapes, for messages."""
    return ", ".join(f"{t.name}: {t.spec}" for t in op.inputs) or "none"
