"""Tables of translations: how operations that TensorFlow wrote are built of ours, a row each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from headrace.plugins.ownership import check_reason, line_of_function
from headrace.records import dataclass

if TYPE_CHECKING:
    from headrace.graph.tensor import Tensor


class ForeignNode(Protocol):
    """A node of another system's graph, as the function of a translation sees it.

    Attributes:
        name: Its name.
        op: The type of its op.
        tensors: What it takes, as tensors; of a variable the value.
    """

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def op(self) -> str:
        """The type of its op."""

    @property
    def tensors(self) -> list[Tensor]:
        """What it takes, as tensors; of a variable the value."""

    def tensor(self, index: int) -> Tensor:
        """Return an input as a tensor; of a variable the value."""

    def value(self, index: int) -> Any:
        """Return an input as the function of the node that yields it returned it."""

    def handle(self, index: int) -> Tensor:
        """Return an input that is the handle of a variable, or of another resource."""

    def static(self, index: int) -> Any:
        """Return the value of an input where it is known while the graph is built, else None."""

    def attr(self, name: str, default: Any = None) -> Any:
        """Return an attribute as a Python value; texts are bytes that ``text`` reads."""

    def text(self, name: str, default: str = "") -> str:
        """Return an attribute that is a text."""

    def call(self, function: Any, arguments: Sequence[Any]) -> list[Any]:
        """Build what a function of the graph's library holds, and return its results."""


F = TypeVar("F", bound=Callable[[Any], Any])


@dataclass(frozen=True, slots=True, eq=False)
class Translation:
    """How an op of TensorFlow is built of ours.

    Attributes:
        op: The op's type there.
        function: From a ``ForeignNode`` to what stands for its outputs, in order.
        where: Module and line of the function.
        outputs: The names of its outputs where there are several: those of functions' insides are
            named by them.
        ignored: Attributes that make no difference here.
        override: Why it replaces the translation of another package; empty where it does not.
    """

    op: str
    function: Callable[[Any], Any]
    where: str
    outputs: tuple[str, ...] = ()
    ignored: frozenset[str] = frozenset()
    override: str = ""


class TranslationTable:
    """Translations that one package contributes."""

    def __init__(self) -> None:
        self._rows: list[Translation] = []

    def add(
        self, *ops: str, outputs: str = "", ignored: str = "", override: str = ""
    ) -> Callable[[F], F]:
        """Add ``f(node)``, which returns what stands for the outputs of a node.

        It is called with the graph that is built as the default graph, in the scopes of name,
        device and control dependencies of the node. An attribute that it does not ask for is
        refused, unless it is a dtype.

        Args:
            *ops: The types of ops that it translates.
            outputs: The names of the outputs where there are several, in order.
            ignored: Names of attributes that make no difference here.
            override: Why it replaces the translation of another package.
        """
        reason = check_reason(override)

        def add(function: F) -> F:
            where = line_of_function(function)
            for op in ops:
                names = frozenset(ignored.split())
                row = Translation(op, function, where, tuple(outputs.split()), names, reason)
                self._rows.append(row)
            return function

        return add

    def call(
        self,
        op: str,
        target: Callable[..., Any],
        attrs: str = "",
        *,
        listed: bool = False,
        outputs: str = "",
        ignored: str = "",
        override: str = "",
    ) -> None:
        """Add a row for an op that one function builds: of its inputs in order, and attributes.

        Args:
            op: The op's type.
            target: The function; it takes the inputs by position, and attributes by name.
            attrs: Names of attributes; ``theirs=ours`` where the names differ.
            listed: Whether the function takes all inputs as one list.
            outputs: The names of the outputs where there are several.
            ignored: Names of attributes that make no difference here.
            override: Why it replaces the translation of another package.
        """
        pairs = [
            (name, ours or name) for name, _, ours in (a.partition("=") for a in attrs.split())
        ]

        def function(node: Any) -> Any:
            keywords = {}
            for name, ours in pairs:
                found = node.attr(name)
                if found is not None:
                    keywords[ours] = found.decode() if isinstance(found, bytes) else found
            inputs = [node.tensors] if listed else node.tensors
            return target(*inputs, **keywords)

        names = frozenset(ignored.split())
        where = f"{getattr(target, '__module__', '?')}:{getattr(target, '__name__', '?')}"
        reason = check_reason(override)
        row = Translation(op, function, where, tuple(outputs.split()), names, reason)
        self._rows.append(row)

    def __iter__(self) -> Iterator[Translation]:
        return iter(self._rows)
