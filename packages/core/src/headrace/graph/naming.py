"""Names of what functions return that are composed of several operations."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from headrace.graph.indexed_slices import IndexedSlices
from headrace.graph.scopes import current_scope
from headrace.graph.tensor import Tensor

P = ParamSpec("P")
R = TypeVar("R")


def names_result(function: Callable[P, R]) -> Callable[P, R]:
    """Give the tensor that a function returns the name of the scope in which it was made.

    So ``hr.nn.elu(x, name="act")`` is the tensor ``"act:0"`` as that of an op would be, whichever
    operations it is composed of; the others are called ``"act/..."``.

    Of ``IndexedSlices`` it is the values that get the name, and of several tensors the first one.

    Args:
        function: Opens a name scope, makes operations in it, and returns the output of one.
    """

    @functools.wraps(function)
    def named(*args: P.args, **kwargs: P.kwargs) -> R:
        scope = current_scope()
        graph, before = scope.graph, scope.graph.version
        result = function(*args, **kwargs)
        made: object = result[0] if isinstance(result, tuple) and result else result
        made = made.values if isinstance(made, IndexedSlices) else made
        if isinstance(made, Tensor) and made.graph is graph:
            inner = made.op.name.rpartition("/")[0]
            if inner != scope.name and inner:
                graph.rename(made.op, inner, before)
        return result

    return named
