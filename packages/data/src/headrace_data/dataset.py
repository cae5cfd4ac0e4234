"""Data sets: descriptions of sequences of elements, as operations of a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import headrace as hr
from headrace.errors import DTypeError, FailedPreconditionError, shown
from headrace_data import structure
from headrace_data.iterators.iterator import (
    Iterator,
    make_initializable_iterator,
    make_one_shot_iterator,
)
from headrace_data.options import Options
from headrace_data.sources.files import list_files
from headrace_data.sources.generator import from_generator
from headrace_data.sources.tensors import (
    from_sparse_tensor_slices,
    from_tensor_slices,
    from_tensors,
    range_,
)
from headrace_data.transformations.batching import padded_batch, unbatch
from headrace_data.transformations.caching import cache
from headrace_data.transformations.flattening import flat_map, interleave
from headrace_data.transformations.joining import concatenate, repeat, zip_
from headrace_data.transformations.mapping import map_
from headrace_data.transformations.prefetching import prefetch
from headrace_data.transformations.reducing import reduce
from headrace_data.transformations.selecting import filter_, shard, skip, take
from headrace_data.transformations.shuffling import shuffle
from headrace_data.transformations.vectorizing import batch
from headrace_data.transformations.windowing import window


class Dataset(structure.Described):
    """A sequence of elements, each a structure of tensors.

    Elements are tensors, sparse and ragged ones, arrays, optionals and data sets, nested in
    tuples, named tuples and dicts. Nothing is computed until an iterator is asked for an element.
    Functions of elements are traced once and compiled as steps are.

    Attributes:
        variant: The handle that stands for it in the graph.
        spec: The structure of the elements.
    """

    # -- what is known of the elements

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

    def with_options(self, options: Options) -> Dataset:
        """Return the same data set with options.

        Args:
            options: An ``hr.data.Options``; those that are set count, beside those of the data
                sets that this one is made of.

        Raises:
            DTypeError: if it is something else.
            AttributeValueError: if an option is set to another value there.
        """
        if not isinstance(options, Options):
            raise DTypeError(f"with_options takes an hr.data.Options, got {shown(options)}")
        self.options().merge(options)
        made = Dataset(self.variant, self.spec, [self])
        made._options = options
        return made

    # -- sources

    @staticmethod
    def from_tensors(tensors: Any) -> Dataset:
        """Return a data set of one element.

        Args:
            tensors: The element, a structure of tensors and what converts to them.
        """
        return _seen(from_tensors(tensors))

    @staticmethod
    def from_tensor_slices(tensors: Any) -> Dataset:
        """Return a data set of the rows of tensors.

        Args:
            tensors: A structure of tensors [n, ...], of one n; sparse and ragged ones, too. A list
                of data sets of elements of one structure makes a data set of these.

        Raises:
            ShapeError: if a component has no first axis, or the first axes differ.
        """
        return _seen(from_tensor_slices(tensors))

    @staticmethod
    def from_sparse_tensor_slices(sparse_tensor: Any) -> Dataset:
        """Return a data set of the rows of a sparse tensor, each as indices, values and shape.

        Args:
            sparse_tensor: The sparse tensor, its indices in order.

        Raises:
            DTypeError: if it is no sparse tensor.
        """
        return _seen(from_sparse_tensor_slices(sparse_tensor))

    @staticmethod
    def from_generator(
        generator: Callable[..., Any],
        output_types: Any,
        output_shapes: Any = None,
        args: Any = None,
    ) -> Dataset:
        """Return a data set of what a Python generator yields.

        Each pass calls ``generator`` anew. A saved position is the number of elements that it
        yielded: after a restart that many are taken from a new generator and left out, so that
        only generators that yield the same again resume where they stood.

        Args:
            generator: A function that returns an iterable.
            output_types: The dtypes of what it yields, in its structure.
            output_shapes: The shapes in that structure; unknown if None.
            args: Tensors with whose values it is called.

        Raises:
            DTypeError: if ``generator`` is no function.
        """
        return _seen(from_generator(generator, output_types, output_shapes, args))

    @staticmethod
    def range(*args: Any) -> Dataset:
        """Return a data set of the numbers of a range, int64.

        Args:
            *args: A stop; a start and a stop; or a start, a stop and a step. Scalars.

        Raises:
            InvalidArgumentError: if the step is zero.
        """
        return _seen(range_(*args))

    @staticmethod
    def zip(datasets: Any) -> Dataset:
        """Return a data set of the elements of several side by side, as many as the shortest has.

        Args:
            datasets: Data sets in tuples and dicts, which become the structure of the elements.

        Raises:
            DTypeError: if it is a list, or holds something else.
        """
        return _seen(zip_(datasets))

    @staticmethod
    def list_files(file_pattern: Any, shuffle: bool | None = None, seed: Any = None) -> Dataset:
        """Return a data set of the names of the files that match patterns.

        Args:
            file_pattern: [] or [n], patterns as a shell takes them.
            shuffle: Whether in another order in each pass; True if None.
            seed: The seed of the order.

        Raises:
            ShapeError: if ``file_pattern`` has more axes.
            InvalidArgumentError: when it runs, if no file matches.
        """
        return _seen(list_files(file_pattern, shuffle, seed))

    # -- transformations

    def concatenate(self, dataset: Dataset) -> Dataset:
        """Return a data set of these elements, and of those of another one after them.

        Args:
            dataset: A data set of elements of the same structure and dtypes.

        Raises:
            DTypeError: if the dtypes differ.
        """
        return _seen(concatenate(self, dataset))

    def prefetch(self, buffer_size: Any) -> Dataset:
        """Return a data set whose elements a thread takes ahead.

        Args:
            buffer_size: [], how many; ``experimental.AUTOTUNE`` for a few.
        """
        return _seen(prefetch(self, buffer_size))

    def repeat(self, count: Any = None) -> Dataset:
        """Return a data set of the elements again and again.

        Args:
            count: [], how often; endlessly if None or -1.
        """
        return _seen(repeat(self, count))

    def enumerate(self, start: Any = 0) -> Dataset:
        """Return a data set of pairs of a number, int64, and an element.

        Args:
            start: [], the first number.
        """
        numbers = Dataset.range(start, hr.int64.max)
        return Dataset.zip((numbers, self))

    def shuffle(
        self, buffer_size: Any, seed: Any = None, reshuffle_each_iteration: bool | None = None
    ) -> Dataset:
        """Return a data set of the elements in another order.

        A buffer is filled, and each element is one of the buffer, by chance; the next one takes
        its place. The order follows from the seeds of graph and transformation, and from the
        number of the pass. It is not TensorFlow's order.

        Args:
            buffer_size: [], how many elements the buffer holds, at least 1.
            seed: [], the seed; without it and without a seed of the graph the order is different
                in each iterator.
            reshuffle_each_iteration: Whether passes have different orders; True if None.

        Raises:
            InvalidArgumentError: if the buffer has no room.
        """
        return _seen(shuffle(self, buffer_size, seed, reshuffle_each_iteration))

    def cache(self, filename: Any = "") -> Dataset:
        """Return a data set that keeps its elements in the first pass, for those that follow.

        Args:
            filename: [], a string: the file to keep them in; in memory if it is empty. A pass that
                ends early keeps nothing.
        """
        return _seen(cache(self, filename))

    def take(self, count: Any) -> Dataset:
        """Return a data set of the first elements.

        Args:
            count: [], how many; all if it is negative.
        """
        return _seen(take(self, count))

    def skip(self, count: Any) -> Dataset:
        """Return a data set of all but the first elements.

        Args:
            count: [], how many to leave out; all if it is negative.
        """
        return _seen(skip(self, count))

    def shard(self, num_shards: Any, index: Any) -> Dataset:
        """Return a data set of the elements whose number modulo ``num_shards`` is ``index``.

        Args:
            num_shards: [], how many shards there are.
            index: [], which of them.

        Raises:
            InvalidArgumentError: if there is no such shard.
        """
        return _seen(shard(self, num_shards, index))

    def batch(self, batch_size: Any, drop_remainder: Any = False) -> Dataset:
        """Return a data set of so many elements each, joined along a new first axis.

        Args:
            batch_size: [], how many. Tensors become tensors with one axis more, ragged tensors
                ones with one ragged axis more, sparse ones as large as the largest.
            drop_remainder: [], whether to leave out a last batch that is smaller.

        Raises:
            InvalidArgumentError: if ``batch_size`` is not positive; when it runs, if elements have
                different shapes.
        """
        return _seen(batch(self, batch_size, drop_remainder))

    def padded_batch(
        self,
        batch_size: Any,
        padded_shapes: Any,
        padding_values: Any = None,
        drop_remainder: Any = False,
    ) -> Dataset:
        """Return a data set of so many elements each, padded to one shape and joined.

        Args:
            batch_size: [], how many.
            padded_shapes: A shape for each component; None or -1 for the largest in the batch.
            padding_values: A scalar for each component; zero or the empty string if None.
            drop_remainder: [], whether to leave out a last batch that is smaller.

        Raises:
            DTypeError: if components are sparse.
            ShapeError: if elements cannot fit.
        """
        return _seen(padded_batch(self, batch_size, padded_shapes, padding_values, drop_remainder))

    def unbatch(self) -> Dataset:
        """Return a data set of the rows of the elements.

        Raises:
            ShapeError: if a component has no first axis, or they are known to have different ones.
        """
        return _seen(unbatch(self))

    def map(self, map_func: Callable[..., Any], num_parallel_calls: Any = None) -> Dataset:
        """Return a data set of what a function returns for the elements.

        It is in their order, unless ``Options.experimental_deterministic`` is False and several
        calls run at once.

        Args:
            map_func: From an element to a structure of tensors. The parts of a tuple come as
                arguments, a named tuple as one.
            num_parallel_calls: [], how many calls may run at once, in threads; one after the other
                if None.

        Raises:
            DTypeError: if the function returns something else.
        """
        return _seen(map_(self, map_func, num_parallel_calls))

    def map_with_legacy_function(
        self, map_func: Callable[..., Any], num_parallel_calls: Any = None
    ) -> Dataset:
        """Return ``map(map_func, num_parallel_calls)``."""
        return self.map(map_func, num_parallel_calls)

    def flat_map(self, map_func: Callable[..., Any]) -> Dataset:
        """Return a data set of the elements of data sets that a function makes, one by one.

        Args:
            map_func: From an element to a data set.

        Raises:
            DTypeError: if it returns something else.
        """
        return _seen(flat_map(self, map_func))

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: Any = -1,
        block_length: Any = 1,
        num_parallel_calls: Any = None,
    ) -> Dataset:
        """Return a data set of the elements of data sets that a function makes, in turns.

        Args:
            map_func: From an element to a data set.
            cycle_length: [], how many data sets take turns; as many as there are processors if -1.
            block_length: [], how many elements each gives in its turn.
            num_parallel_calls: [], how many threads take elements ahead; none if None. The order
                is the same, unless ``Options.experimental_deterministic`` is False.

        Raises:
            DTypeError: if the function returns no data set.
            InvalidArgumentError: if a number is not positive.
        """
        return _seen(interleave(self, map_func, cycle_length, block_length, num_parallel_calls))

    def filter(self, predicate: Callable[..., Any]) -> Dataset:
        """Return a data set of the elements for which a function says True.

        Args:
            predicate: From an element to [], bool.

        Raises:
            AttributeValueError: if it returns something else.
        """
        return _seen(filter_(self, predicate))

    def filter_with_legacy_function(self, predicate: Callable[..., Any]) -> Dataset:
        """Return ``filter(predicate)``."""
        return self.filter(predicate)

    def apply(self, transformation_func: Callable[[Dataset], Any]) -> Dataset:
        """Return what a function makes of the data set.

        Args:
            transformation_func: From a data set to a data set.

        Raises:
            DTypeError: if it returns something else.
        """
        made = transformation_func(self)
        if not isinstance(made, Dataset):
            raise DTypeError(
                f"`transformation_func` must return a data set, got {type(made).__name__}"
            )
        return made

    def window(
        self, size: Any, shift: Any = None, stride: Any = 1, drop_remainder: Any = False
    ) -> Dataset:
        """Return a data set of windows: each component of an element is a data set.

        Args:
            size: [], how many elements a window has.
            shift: [], how many elements lie between the beginnings of windows; ``size`` if None.
            stride: [], which elements a window has: every ``stride``-th.
            drop_remainder: [], whether to leave out windows at the end that are smaller.

        Raises:
            InvalidArgumentError: if a number is not positive.
        """
        return _seen(window(self, size, shift, stride, drop_remainder))

    def reduce(self, initial_state: Any, reduce_func: Callable[..., Any]) -> Any:
        """Return what a function makes of a state and all elements, one after the other.

        Args:
            initial_state: The first state, a structure of tensors.
            reduce_func: ``reduce_func(state, element)``, which returns the next state.

        Returns:
            The last state, as tensors; each run goes over all elements.

        Raises:
            DTypeError: if states have different dtypes.
        """
        return reduce(self, initial_state, reduce_func)

    # -- iterators

    def make_one_shot_iterator(self) -> Iterator:
        """Return an iterator that starts by itself, and goes over the elements once.

        Raises:
            GraphError: if the data set depends on placeholders, variables or tables.
        """
        return make_one_shot_iterator(self)

    def make_initializable_iterator(self, shared_name: str | None = None) -> Iterator:
        """Return an iterator that starts whenever its ``initializer`` runs.

        Args:
            shared_name: Its name in its container; a name of its own if None.
        """
        return make_initializable_iterator(self, shared_name)

    # -- as a component

    def __iter__(self) -> Any:
        raise FailedPreconditionError(
            "a data set is a description: make an iterator, and run what its get_next() returns "
            "in a session"
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} shapes: {self.output_shapes}, types: {self.output_types}>"


def _seen(made: structure.Described) -> Dataset:
    """Return a data set as programs see it."""
    assert isinstance(made, Dataset)
    return made


structure.Described.face = Dataset
