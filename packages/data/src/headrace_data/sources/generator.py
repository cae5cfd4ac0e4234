"""Data sets of what Python generators yield."""

from __future__ import annotations

import itertools
import os
import traceback
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import headrace as hr
from headrace.errors import (
    DTypeError,
    HeadraceError,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
    UnimplementedError,
    UnknownError,
    shown,
)
from headrace.extend.arguments import items
from headrace.extend.graphs import get_default_graph, is_python_literal, to_array, user_site
from headrace_data import structure
from headrace_data.build import make
from headrace_data.runtime.passes import Pass
from headrace_data.runtime.stream import DatasetValue, Element, State, Stream, stream
from headrace_data.structure import Described


class _Source:
    """A generator function, and what its elements must be."""

    def __init__(self, function: Callable[..., Any], element: Any, site: str) -> None:
        self.function = function
        self.element = element
        self.specs = structure.leaves(element)
        self.name = getattr(function, "__name__", type(function).__name__)
        self.site = site


# Graphs cannot hold Python functions: they name them by tokens that mean something in one process
# alone, for as long as the graph lives.
_SOURCES: weakref.WeakValueDictionary[str, _Source] = weakref.WeakValueDictionary()
_OWNERS: weakref.WeakKeyDictionary[Any, list[_Source]] = weakref.WeakKeyDictionary()
_NUMBERS = itertools.count()


def from_generator(
    generator: Callable[..., Any], output_types: Any, output_shapes: Any, args: Any
) -> Described:
    """Return a data set of what a generator yields."""
    if not callable(generator):
        raise DTypeError(
            f"from_generator: `generator` must be callable, got {type(generator).__name__}; pass "
            "the function that makes the generator, not the generator"
        )
    element = structure.from_legacy(output_types, output_shapes)
    arguments = [hr.convert_to_tensor(a, name="args") for a in items(args or (), "args")]
    source = _Source(generator, element, str(user_site()))
    token = f"{os.getpid()}-{next(_NUMBERS)}"
    _SOURCES[token] = source
    _OWNERS.setdefault(get_default_graph().outermost, []).append(source)
    with hr.name_scope("GeneratorDataset"):
        return make("generator", element, arguments=arguments, settings={"token": token})


@stream("generator")
class GeneratorStream(Stream):
    """What a generator yields.

    A generator cannot be saved. Its position is how much it yielded: after a restart it is made
    anew, and yields that much in vain. Generators that yield something else each time do not
    resume where they stood.
    """

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        token = value.settings["token"]
        found = _SOURCES.get(token)
        if found is None:
            raise NotFoundError(
                "the generator of a data set lives in the process that built it, and neither in "
                "graph documents nor in other tasks of a cluster: place the pipeline on a device "
                "of the client's own task"
            )
        self._source = found
        self._items: Iterator[Any] | None = None
        self._taken = 0
        self._ended = False

    def next(self) -> Element | None:
        """Return what it yields next.

        Raises:
            HeadraceError: if it raises, or yields what was not stated.
        """
        if self._ended:
            return None
        try:
            if self._items is None:
                given = [np.asarray(a)[()] for a in self.value.arguments]
                self._items = iter(self._source.function(*given))
            item = next(self._items)
        except StopIteration:
            self._ended = True
            return None
        except Exception as error:
            # A generator that raised yields nothing more.
            self._ended = True
            raise self._failed(error) from error
        self._taken += 1
        return self._checked(item)

    def _failed(self, error: Exception) -> HeadraceError:
        kind: type[HeadraceError] = UnknownError
        if isinstance(error, HeadraceError):
            kind = type(error)
        elif isinstance(error, NotImplementedError):
            kind = UnimplementedError
        elif isinstance(error, MemoryError):
            kind = ResourceExhaustedError
        elif isinstance(error, TypeError | ValueError):
            kind = InvalidArgumentError
        where = traceback.extract_tb(error.__traceback__)[-1]
        return kind(
            f"the generator {self._source.name!r} failed after {self._taken} elements: "
            f"{type(error).__name__}: {error}\n"
            f"  raised at {where.filename}:{where.lineno}: {where.line}\n"
            f"  the data set was made at {self._source.site}"
        )

    def _checked(self, item: Any) -> Element:
        source = self._source
        try:
            parts = structure.leaves_up_to(source.element, _with_lists(source.element, item))
        except HeadraceError:
            raise InvalidArgumentError(
                f"{self._which()} yielded {shown(item)}, expected the structure "
                f"{structure.describe(source.element)}"
            ) from None
        return tuple(
            self._component(part, spec) for part, spec in zip(parts, source.specs, strict=True)
        )

    def _component(self, part: Any, spec: Any) -> Any:
        try:
            literal = is_python_literal(part) or isinstance(part, str | bytes)
            array = np.array(to_array(part, spec.dtype if literal else None))
        except HeadraceError as error:
            raise InvalidArgumentError(
                f"{self._which()} yielded {shown(part)} where {spec.dtype} was expected: {error}"
            ) from None
        if array.dtype != spec.dtype.numpy:
            if not np.can_cast(array.dtype, spec.dtype.numpy, "same_kind"):
                found = "string" if array.dtype == object else array.dtype
                raise InvalidArgumentError(
                    f"{self._which()} yielded {found} where {spec.dtype} was expected: "
                    f"{shown(part)}"
                )
            array = array.astype(spec.dtype.numpy)
        if not spec.shape.is_compatible_with(array.shape):
            raise InvalidArgumentError(
                f"{self._which()} yielded shape {list(array.shape)} where {spec.shape} was expected"
            )
        return array

    def _which(self) -> str:
        source = self._source
        return f"element {self._taken - 1} of the generator {source.name!r} ({source.site}): it"

    def save(self) -> State:
        """Return how many elements it yielded."""
        return [self._taken, self._ended]

    def restore(self, state: State) -> None:
        """Take that many elements from a new generator.

        Raises:
            InvalidArgumentError: if it has fewer.
        """
        count, ended = state
        while self._taken < count:
            try:
                if self._items is None:
                    given = [np.asarray(a)[()] for a in self.value.arguments]
                    self._items = iter(self._source.function(*given))
                next(self._items)
            except StopIteration:
                raise InvalidArgumentError(
                    f"the generator {self._source.name!r} yielded {self._taken} elements, and "
                    f"stood after {count} when its position was saved; a generator resumes only "
                    "if it yields the same again"
                ) from None
            except Exception as error:
                raise self._failed(error) from error
            self._taken += 1
        self._ended = ended

    def close(self) -> None:
        """Close the generator, so that what it holds is let go."""
        items, self._items = self._items, None
        self._ended = True
        close = getattr(items, "close", None)
        if close is not None:
            close()


def _with_lists(element: Any, item: Any) -> Any:
    """Return an item in which lists stand for the tuples that were stated, as TensorFlow takes."""
    if structure.is_nested(element) and isinstance(element, tuple) and isinstance(item, list):
        return tuple(item)
    return item
