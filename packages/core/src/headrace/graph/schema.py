"""Op schemas, and the process-wide table of the ops that were declared."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.dtypes import DType
from headrace.errors import GraphError, HeadraceError, PluginError, ShapeError, shown
from headrace.graph.attributes import canonical, may_hold_function
from headrace.graph.spec import MAX_RANK, TensorSpec, is_addressable, like
from headrace.plugins.error_attribution import described, line_of_error
from headrace.plugins.ownership import OWN_PACKAGES, package_of
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
        whole: The dtype that arrays of others become, if it holds all of their elements; None
            where they are refused.
        reads: Whether a variable's handle stands for its value, though handles belong to it.
    """

    name: str
    accepts: Callable[[DType], bool] = field(compare=False)
    unify: bool = True
    whole: DType | None = None
    reads: bool = False


@dataclass(frozen=True, slots=True)
class InputParam:
    """A tensor parameter of an op.

    Attributes:
        name: Its name.
        kind: The dtypes that it may have.
        variadic: Whether it takes any number of tensors.
        optional: Whether it may be left out.
        least: How many tensors a variadic one takes at least.
        on_host: Whether every device hands it to kernels as an array of the host.
    """

    name: str
    kind: Kind
    variadic: bool = False
    optional: bool = False
    least: int = 1
    on_host: bool = False


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
        effects: What a run of it does beside computing outputs from inputs, in the words of
            ``headrace.graph.facts.EFFECTS``; nothing for a pure op, which is folded and merged.
        blocking: May wait for something outside the step.
        calls_out: Calls the program's own code, which may wait, in the thread that makes the call.
        elementwise: Output element ``i`` depends on the elements ``i`` of the broadcast inputs.
        expression: What element ``i`` of the output is: ``f(s, *inputs, **attrs)``, which computes
            with the scalar functions of ``s``; None for an op that does not say. See
            ``headrace.scalars``.
        reduction: Folds axes of its first input.
        early: Computes it from small arrays of integers while the graph is built,
            ``f(*inputs, **attrs)``; None for an op that does not say. See
            ``headrace.graph.static_values``.
        flops: Counts the floating-point operations of a run, ``f(inputs, outputs)`` of shapes; None
            where one for each element is about right.
        commutative: Its two inputs give the same bits in either order, unless they are strings.
        exact: Every element of its result is that of real arithmetic, rounded correctly, so that
            its bits do not depend on what is computed beside it. Complex results may differ.
        view: Yields the elements of its first input in their order, under another shape at most.
        accumulates: Adds up what meets in one place of an output. A device may leave the order of
            such sums to chance, and says so.
        repeats: Its output holds elements of an input again and again, and no others.
        nonnegative: No element of its output is negative, nor -0.
        total: Fails for no values of inputs whose shapes, and the values of those that it reads on
            the host, are known when the graph is built. What its expression computes never fails.
        concurrent: The handle that it yields stands for what is made to be used in any order, such
            as a queue, so that uses of it in no order with each other are no race.
        concerted: Goes on only together with steps of other sessions, and keeps the order among
            them by itself.
        aliases: Names of inputs whose memory outputs may share. None stands for all of them, or,
            where the op is elementwise, for none.
        keeps_inputs: A kernel may keep arrays that it was given when it has returned.
        may_be_dead: Outputs may be dead, so that what takes them does not run.
        builtin: The runtime itself runs it, on every device, without a kernel.
        reaches: What it reaches that no model of a stranger should: ``"files"``, which it writes,
            or ``"python"``, functions of the process; empty for nothing.
        no_gradient: Why the op has no gradient, empty where it should have a rule.
        public: The name under which users find it, as in ``"nn.softmax"``.
        node_name: What its nodes are called where a program gives them no name.
        where: Module and line of the declaration.
        stateful: Whether it has any effect, so that it is never folded.
        changes: Whether a run of it leaves something behind, so that it must happen, and just once.
        holds: Whether its attributes may be functions.
        host_inputs: Whether it has inputs that every device hands over on the host.
    """

    type: str
    inputs: tuple[InputParam, ...]
    attrs: tuple[AttrParam, ...]
    infer: Callable[..., Any]
    function: Callable[..., Any]
    effects: frozenset[str] = frozenset()
    blocking: bool = False
    calls_out: bool = False
    elementwise: bool = False
    expression: Callable[..., Any] | None = None
    reduction: bool = False
    early: Callable[..., Any] | None = None
    flops: Callable[..., float] | None = None
    commutative: bool = False
    exact: bool = False
    view: bool = False
    accumulates: bool = False
    repeats: bool = False
    nonnegative: bool = False
    total: bool = False
    concurrent: bool = False
    concerted: bool = False
    aliases: tuple[str, ...] | None = None
    keeps_inputs: bool = False
    may_be_dead: bool = False
    builtin: bool = False
    reaches: str = ""
    no_gradient: str = ""
    public: str = ""
    node_name: str = ""
    where: str = ""
    # Asked of every operation by every pass.
    stateful: bool = field(init=False)
    changes: bool = field(init=False)
    holds: bool = field(init=False)
    host_inputs: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "stateful", bool(self.effects))
        object.__setattr__(self, "changes", "changes" in self.effects)
        object.__setattr__(self, "host_inputs", any(p.on_host for p in self.inputs))
        object.__setattr__(self, "holds", any(may_hold_function(a.hint) for a in self.attrs))

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

    def flat_places(
        self, arity: tuple[int, ...], chosen: Callable[[InputParam], bool]
    ) -> tuple[int, ...]:
        """Return the places, among a node's flat inputs, of those of the chosen parameters."""
        places: list[int] = []
        start = 0
        for param, count in zip(self.inputs, arity, strict=True):
            if chosen(param):
                places.extend(range(start, start + count))
            start += count
        return tuple(places)

    def may_share(self, param: InputParam) -> bool:
        """Whether an output may share the memory of a parameter."""
        return not self.elementwise if self.aliases is None else param.name in self.aliases

    def output_specs(
        self, specs: list[TensorSpec], arity: tuple[int, ...], attrs: Mapping[str, Any]
    ) -> tuple[tuple[TensorSpec, ...], Any]:
        """Run the rule; return the flat output specs and the rule's own answer.

        Raises:
            ShapeError: if an output has more axes than arrays can have.
            PluginError: if the rule of another package fails, or returns no specs.
            HeadraceError: what the rule refuses.
        """
        answer: Any = REQUIRED
        try:
            answer = self.infer(*self.group(specs, arity), **attrs)
            if answer is None:
                return (), None
            flat = (answer,) if isinstance(answer, TensorSpec) else tuple(answer)
            checked = None
            for spec in flat:
                if spec is checked:
                    continue  # Thousands of outputs of one op are alike.
                checked = spec
                if spec.shape.dims is not None and len(spec.shape.dims) > MAX_RANK:
                    raise ShapeError(
                        f"the result has {len(spec.shape.dims)} axes, arrays have {MAX_RANK} at "
                        "most"
                    )
                if not is_addressable(spec.shape):
                    raise ShapeError(f"no array has the shape {spec.shape} of the result")
            # A rule that returns the spec of an input means its dtype and shape, never its value.
            return tuple(_like_input(spec, specs) for spec in flat), answer
        except HeadraceError:
            raise
        except Exception as error:
            if package_of(self.where) not in OWN_PACKAGES:
                raise self._rule_error(error, answer) from error
            if isinstance(error, ArithmeticError | LookupError | ValueError | MemoryError):
                # What NumPy refuses where a rule computes with values that are known.
                raise ShapeError(f"no result: {error}") from error
            raise

    def _rule_error(self, error: Exception, answer: Any) -> PluginError:
        failed = f"failed: {described(error)}"
        if answer is not REQUIRED:
            failed = f"returned {shown(answer)}, and returns a TensorSpec, several, or None"
        place = self.where if answer is not REQUIRED else line_of_error(error, self.infer)
        return PluginError(
            f"the rule of {self.type} {failed}\n  in package {package_of(self.where)}, at {place}"
        )


def _like_input(spec: TensorSpec, inputs: list[TensorSpec]) -> TensorSpec:
    if spec.value is None and spec.dims is None:
        return spec
    return like(spec) if any(spec is given for given in inputs) else spec


class OpTable:
    """The declared ops by type name, which is an op's identity: none is ever replaced."""

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
                "the first has the name, declare the other one under another"
            )
        self._schemas[schema.type] = schema

    def forget(self, types: Iterable[str]) -> None:
        """Drop the ops of a plugin that turned out to be broken."""
        for type_name in types:
            self._schemas.pop(type_name, None)

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
