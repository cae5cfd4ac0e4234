"""Templates: functions that make their variables when they are first called, and share them."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, final

from headrace.errors import GraphError, HeadraceError, shown, told
from headrace.graph.collections import GraphKeys
from headrace.graph.graph_scopes import checked_name
from headrace.graph.scopes import get_default_graph
from headrace.ops.variable import Variable
from headrace.ops.variable_scope import VariableScope, variable_scope


@final
class Template:
    """A function with variables of its own, as ``make_template`` returns.

    Attributes:
        variable_scope: The scope of its variables; None until there is one.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        unique_name: str | None,
        custom_getter: Callable[..., Any] | None,
    ) -> None:
        self._name = name
        self._function = function
        self._unique_name = unique_name
        self._custom_getter = custom_getter
        self._lock = threading.RLock()
        self._called = False
        self.variable_scope: VariableScope | None = None
        functools.update_wrapper(self, function)

    @property
    def name(self) -> str:
        """The name given to it."""
        return self._name

    @property
    def func(self) -> Callable[..., Any]:
        """The function."""
        return self._function

    @property
    def variable_scope_name(self) -> str | None:
        """What the names of its variables begin with; None until there is a scope."""
        if self.variable_scope is None:
            return None
        name = self.variable_scope.name
        return f"{name}/" if name and not name.endswith("/") else name

    @property
    def var_scope(self) -> VariableScope | None:
        """The scope of its variables, under its old name."""
        return self.variable_scope

    @property
    def variables(self) -> list[Variable]:
        """The variables that it made, of any kind."""
        return [*self.global_variables, *self.local_variables]

    @property
    def global_variables(self) -> list[Variable]:
        """Those of its variables that are kept in checkpoints."""
        return self._in_collection(GraphKeys.GLOBAL_VARIABLES)

    @property
    def local_variables(self) -> list[Variable]:
        """Those of its variables that are not."""
        return self._in_collection(GraphKeys.LOCAL_VARIABLES)

    @property
    def trainable_variables(self) -> list[Variable]:
        """Those of its variables that optimizers change."""
        return self._in_collection(GraphKeys.TRAINABLE_VARIABLES)

    @property
    def non_trainable_variables(self) -> list[Variable]:
        """Those of its global variables that optimizers leave alone."""
        trainable = set(self.trainable_variables)
        return [v for v in self.global_variables if v not in trainable]

    @property
    def weights(self) -> list[Variable]:
        """All of ``variables``."""
        return self.variables

    @property
    def trainable_weights(self) -> list[Variable]:
        """All of ``trainable_variables``."""
        return self.trainable_variables

    @property
    def non_trainable_weights(self) -> list[Variable]:
        """All of ``non_trainable_variables``."""
        return self.non_trainable_variables

    def enter(self) -> VariableScope:
        """Make the scope of its variables now, if there is none; return it."""
        with self._lock:
            if self.variable_scope is None:
                name, default = self._unique_name, self._name
                getter = self._custom_getter
                # The name scope is the first call's.
                with variable_scope(
                    name, default, custom_getter=getter, auxiliary_name_scope=False
                ) as scope:
                    self.variable_scope = scope
            return self.variable_scope

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function; its ``get_variable`` makes variables first, and finds them later.

        Raises:
            GraphError: if a later call asks for a variable that the first one did not make, or
                makes one that is trainable.
        """
        with self._lock:
            if self.variable_scope is None:
                name, default = self._unique_name, self._name
                getter = self._custom_getter
                with variable_scope(name, default, custom_getter=getter) as scope:
                    self.variable_scope = scope
                    return self._first(args, kwargs)
            with variable_scope(self.variable_scope, reuse=True if self._called else None):
                if not self._called:
                    return self._first(args, kwargs)
                try:
                    return self._again(args, kwargs)
                except HeadraceError as error:
                    error.add_note(
                        f"  in the template {self._name!r}, which finds the variables that its "
                        "first call made"
                    )
                    raise

    def _first(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = self._function(*args, **kwargs)
        self._called = True
        return result

    def _again(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        trainable = get_default_graph().outermost.get_collection_ref(GraphKeys.TRAINABLE_VARIABLES)
        before = len(trainable)
        result = self._function(*args, **kwargs)
        if len(trainable) != before:
            names = ", ".join(told(v.name) for v in trainable[before:])
            raise GraphError(
                f"a later call of a template made trainable variables: {names}; get them with "
                "hr.get_variable, which finds those of the first call"
            )
        return result

    def _in_collection(self, key: str) -> list[Variable]:
        prefix = self.variable_scope_name
        if not self._called or prefix is None:
            return []
        found = get_default_graph().outermost.get_collection(key)
        return [v for v in found if v.op_name.startswith(prefix)]

    def __repr__(self) -> str:
        return f"<Template {self._name!r} of {self._function!r}>"


def make_template(
    name_: str,
    func_: Callable[..., Any],
    create_scope_now_: bool = False,
    unique_name_: str | None = None,
    custom_getter_: Callable[..., Any] | None = None,
    **kwargs: Any,
) -> Template:
    """Return a function whose calls share the variables that ``func_`` gets by ``get_variable``.

    The first call makes them, in a variable scope of the template; later calls find them.

    Example::

        linear = hr.make_template("linear", lambda x: x * hr.get_variable("w", []))
        y, z = linear(x), linear(2.0 * x)

    Args:
        name_: The name of the variable scope, made unique; empty for that in which it is called.
        func_: The function.
        create_scope_now_: Make the scope at once rather than in the first call, inside the scopes
            that are open then.
        unique_name_: The name of the scope as it is; variables of the same names are shared with
            whatever uses the same scope only where that reuses.
        custom_getter_: As for ``variable_scope``.
        **kwargs: Arguments of ``func_`` that all calls have.

    Raises:
        GraphError: if ``name_`` is no name, or ``func_`` no function.
    """
    if name_ != "":
        name_ = checked_name(name_)
    if not callable(func_):
        raise GraphError(f"make_template takes a function, got {shown(func_)}")
    function = functools.partial(func_, **kwargs) if kwargs else func_
    template = Template(name_, function, unique_name_, custom_getter_)
    if create_scope_now_:
        template.enter()
    return template
