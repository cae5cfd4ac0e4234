"""Groups of elements reduced to one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

from headrace.errors import DTypeError, shown
from headrace_data.dataset import Dataset
from headrace_data.transformations.grouping import reduce_groups


@final
class Reducer:
    """How the elements of a group become one: a first state, how it changes, and what it yields."""

    def __init__(
        self,
        init_func: Callable[..., Any],
        reduce_func: Callable[..., Any],
        finalize_func: Callable[..., Any],
    ) -> None:
        """Take the functions.

        Args:
            init_func: From a key, [], int64, to the first state of its group.
            reduce_func: From a state and an element to the next state.
            finalize_func: From the last state to an element.
        """
        self._init_func = init_func
        self._reduce_func = reduce_func
        self._finalize_func = finalize_func

    @property
    def init_func(self) -> Callable[..., Any]:
        """From a key to the first state."""
        return self._init_func

    @property
    def reduce_func(self) -> Callable[..., Any]:
        """From a state and an element to the next state."""
        return self._reduce_func

    @property
    def finalize_func(self) -> Callable[..., Any]:
        """From the last state to an element."""
        return self._finalize_func


def group_by_reducer(key_func: Callable[..., Any], reducer: Reducer) -> Callable[[Dataset], Any]:
    """Return a transformation into one element for each key, in the order of the keys.

    Args:
        key_func: From an element to its key, [], int64.
        reducer: What is done with the elements of a key.

    Raises:
        DTypeError: if ``reducer`` is something else.
    """
    if not isinstance(reducer, Reducer):
        raise DTypeError(f"group_by_reducer takes a Reducer, got {shown(reducer)}")

    def apply(dataset: Dataset) -> Any:
        states: Any = reduce_groups(dataset, key_func, reducer.init_func, reducer.reduce_func)
        return states.map(reducer.finalize_func)

    return apply
