"""``GradientTape``: gradients of what was built inside of a block, by what the block watched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, final

from headrace import (
    Shape,
    Tensor,
    Variable,
    assert_equal,
    concat,
    control_dependencies,
    convert_to_tensor,
    get_default_graph,
    logging,
    map_fn,
    nest,
    one_hot,
    reshape,
    shape,
    size,
    transpose,
    zeros,
    zeros_like,
)
from headrace import range as range_of
from headrace.errors import (
    AttributeValueError,
    FailedPreconditionError,
    GraphError,
    ShapeError,
    shown,
)
from headrace_autodiff.tape_record import Record


@final
class GradientTape:
    """Gradients of what a block of the program builds, with respect to what the tape watches.

    What is built outside of the block, or without anything watched, counts as constant. Trainable
    variables are watched from their first use on, tensors by ``watch``.

    Example::

        with hr.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        slope = tape.gradient(y, x)
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        """Make a tape that records nothing yet.

        Args:
            persistent: Whether it can be asked for gradients more than once.
            watch_accessed_variables: Whether trainable variables are watched by themselves.
        """
        self._persistent = persistent
        self._automatic = watch_accessed_variables
        self._record: Record | None = None
        self._recording = False

    def __enter__(self) -> Self:
        """Start to record, or go on."""
        self._start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop to record."""
        if self._recording:
            self._stop()

    def _start(self) -> None:
        if self._recording:
            raise AttributeValueError("Tape is already recording.")
        if self._record is None:
            self._record = Record(self._automatic)
        self._record.start(get_default_graph())
        self._recording = True

    def _stop(self) -> None:
        if not self._recording or self._record is None:
            raise AttributeValueError("Tape is not recording.")
        self._record.stop()
        self._recording = False

    def watch(self, tensor: Any) -> None:
        """Record what is computed of tensors from now on.

        Args:
            tensor: A tensor or variable, or lists and dicts of these.

        Raises:
            AttributeValueError: if it is something else.
            GraphError: if the tape was not entered yet.
        """
        for each in nest.flatten(tensor):
            if not isinstance(each, Tensor | Variable):
                raise AttributeValueError(
                    f"Passed in object of type {type(each).__name__}, not a Tensor"
                )
            if not each.dtype.is_differentiable:
                logging.warning("a watched tensor has no gradient: %s", shown(each))
            if self._record is None:
                raise GraphError("enter the tape before it watches something")
            self._record.watch(each)

    @contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Leave out what is built in a block.

        Raises:
            FailedPreconditionError: if the tape does not record.
        """
        if self._record is None:
            raise FailedPreconditionError("Trying to stop recording a tape which is not recording.")
        self._stop()
        try:
            yield
        finally:
            self._start()

    def reset(self) -> None:
        """Forget what was recorded and watched, and start anew.

        Raises:
            AttributeValueError: if the tape does not record.
        """
        self._stop()
        self._record = None
        self._start()

    def watched_variables(self) -> tuple[Variable, ...]:
        """Return the variables that are watched, in the order in which they were made."""
        return () if self._record is None else self._record.variables()

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: str = "none",
    ) -> Any:
        """Return the derivatives of the sum of targets.

        Args:
            target: Tensors or variables, in lists or dicts.
            sources: With respect to what: tensors or variables, in lists or dicts.
            output_gradients: For each target the gradient that arrives there, ones if None.
            unconnected_gradients: What to return for a source on which no target depends by what
                was recorded: "none" for None, or "zero" for zeros.

        Returns:
            A gradient for each source, in their structure.

        Raises:
            FailedPreconditionError: if the tape is not persistent, and was asked before.
            AttributeValueError: if ``unconnected_gradients`` is something else.
            NoGradientError: if an operation in between has no gradient rule.
        """
        record = self._asked("gradient")
        if unconnected_gradients not in ("none", "zero"):
            raise AttributeValueError(
                f"Unknown value for unconnected_gradients: {shown(unconnected_gradients)}"
            )
        given = nest.flatten(sources)
        targets = nest.flatten(target)
        arriving = [None] * len(targets)
        if output_gradients is not None:
            arriving = nest.flatten(output_gradients)
        found = record.gradients(targets, given, arriving)
        if unconnected_gradients == "zero":
            found = [zeros_like(x) if g is None else g for x, g in zip(given, found, strict=True)]
        return nest.pack_sequence_as(sources, found)

    def _asked(self, what: str) -> Record:
        """Return what was recorded, for a question."""
        record = self._record
        if record is None:
            raise FailedPreconditionError(
                f"GradientTape.{what} can only be called once on non-persistent tapes."
            )
        if not self._persistent:
            if self._recording:
                self._stop()
            self._record = None
        return record

    def jacobian(
        self,
        target: Any,
        sources: Any,
        unconnected_gradients: str = "none",
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """Return the derivatives of each element of a target.

        Args:
            target: A tensor.
            sources: With respect to what: tensors or variables, in lists or dicts.
            unconnected_gradients: As for ``gradient``.
            parallel_iterations: How many elements may be under way at a time.
            experimental_use_pfor: Without effect.

        Returns:
            For each source a tensor of the target's shape followed by that of the source, in the
            structure of the sources.

        Raises:
            FailedPreconditionError: if the tape is not persistent, and was asked before.
        """
        del experimental_use_pfor
        record = self._asked("jacobian")
        y = convert_to_tensor(target)
        given = nest.flatten(sources)
        known = record.connected(y, given)
        wanted = [x for x, is_known in zip(given, known, strict=True) if is_known]

        def row(i: Any) -> list[Tensor]:
            chosen = reshape(one_hot(i, size(y), dtype=y.dtype), shape(y))
            return [_dense(g, x) for g, x in record.inside(y, wanted, chosen)]

        rows: Iterator[Any] = iter(())
        if wanted:
            kinds = [x.dtype for x in wanted]
            count = parallel_iterations or 10
            rows = iter(map_fn(row, range_of(size(y)), kinds, count))
        found: list[Any] = []
        for x, is_known in zip(given, known, strict=True):
            whole = concat([shape(y), shape(x)], 0)
            if not is_known:
                wanted_zeros = unconnected_gradients == "zero"
                found.append(zeros(whole, x.dtype) if wanted_zeros else None)
                continue
            made = reshape(next(rows), whole)
            made.set_shape(Shape(y.shape).concatenate(Shape(x.shape)))
            found.append(made)
        return nest.pack_sequence_as(sources, found)

    def batch_jacobian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: str = "none",
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Tensor | None:
        """Return the derivatives of each element of each example, of which each is by itself.

        Args:
            target: [n, ...], of which part i depends on part i of ``source`` only.
            source: [n, ...], a tensor.
            unconnected_gradients: As for ``gradient``.
            parallel_iterations: How many elements may be under way at a time.
            experimental_use_pfor: Without effect.

        Returns:
            [n, ..., ...]: the shape of ``target`` followed by that of a part of ``source``; None
            where ``target`` does not depend on ``source``.

        Raises:
            ShapeError: if there is no axis of examples, or there are different numbers of them.
            FailedPreconditionError: if the tape is not persistent, and was asked before.
        """
        del experimental_use_pfor
        y, x = convert_to_tensor(target), convert_to_tensor(source)
        dims = Shape(y.shape), Shape(x.shape)
        few = any(d.rank is not None and d.rank < 2 for d in dims)
        first = [Shape(None) if d.rank is None else d[:1] for d in dims]
        if few or not first[0].is_compatible_with(first[1]):
            raise ShapeError(
                f"Need first dimension of target shape ({dims[0]}) and source shape ({dims[1]}) to "
                "match."
            )
        record = self._asked("batch_jacobian")
        if not record.connected(y, [source])[0]:
            whole = concat([shape(y), shape(x)[1:]], 0)
            return zeros(whole, x.dtype) if unconnected_gradients == "zero" else None
        with control_dependencies([assert_equal(shape(y)[0], shape(x)[0])]):
            count = size(y[0])

        def row(i: Any) -> Tensor:
            chosen = reshape(one_hot(i, count, dtype=y.dtype), shape(y)[1:])
            ((found, _),) = record.inside(y, [source], chosen + zeros_like(y))
            return _dense(found, x)

        rows = map_fn(row, range_of(count), x.dtype, parallel_iterations or 10)
        flat = transpose(reshape(rows, [count, shape(x)[0], -1]), [1, 0, 2])
        made = reshape(flat, concat([shape(y), shape(x)[1:]], 0))
        if None not in [d.rank for d in dims]:
            made.set_shape(dims[0].concatenate(dims[1][1:]))
        return made


def _dense(found: Any, x: Any) -> Tensor:
    return zeros_like(x) if found is None else convert_to_tensor(found)
