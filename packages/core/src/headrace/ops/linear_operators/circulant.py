"""Operators that are diagonal after a Fourier transform."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace import dtypes
from headrace.dtypes import as_dtype
from headrace.errors import AttributeValueError, told
from headrace.graph.convert import convert_to_tensor
from headrace.graph.operation import Operation
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.graph.tensor_shape import TensorShape
from headrace.ops.array import concat, expand_dims, rank, reshape, shape, transpose
from headrace.ops.assertions import assert_less, assert_positive
from headrace.ops.complex import abs_, complex_, imag, real
from headrace.ops.constant import ones, zeros_like
from headrace.ops.constant import range as range_of
from headrace.ops.conversion import cast
from headrace.ops.elementwise import conj, reciprocal
from headrace.ops.fourier import fft, fft2d, fft3d, ifft, ifft2d, ifft3d
from headrace.ops.linalg import adjoint as adjoint_of
from headrace.ops.linear_operators.batches import alike, at_least, check_no_zeros, check_real
from headrace.ops.linear_operators.checks import shape_of
from headrace.ops.linear_operators.operator import LinearOperator
from headrace.ops.reduce import reduce_prod, reduce_sum
from headrace.ops.transcendental import log
from headrace.shapes import Shape

_FORWARD = {1: fft, 2: fft2d, 3: fft3d}
_BACKWARD = {1: ifft, 2: ifft2d, 3: ifft3d}


def as_complex(x: Any) -> Tensor:
    """Return a tensor as complex numbers of its precision."""
    tensor = convert_to_tensor(x)
    if tensor.dtype.is_complex:
        return tensor
    wide = tensor.dtype == dtypes.float64
    made: Tensor = cast(tensor, dtypes.complex128 if wide else dtypes.complex64)
    return made


def _with_axis_first(x: Tensor, from_end: bool) -> Tensor:
    """Return a tensor whose last axis comes first, or the other way round."""
    count = x.shape.ndims
    if count is not None:
        order: Any = [count - 1, *range(count - 1)] if from_end else [*range(1, count), 0]
        return transpose(x, order)
    size = rank(x)
    inner = range_of(0, size - 1)
    if from_end:
        return transpose(x, concat([[size - 1], inner], 0))
    return transpose(x, concat([inner + 1, [0]], 0))


class _Circulant(LinearOperator):
    """A circulant matrix, of circulant blocks where it has several axes."""

    def __init__(
        self,
        spectrum: Any,
        block_depth: int,
        input_output_dtype: Any = dtypes.complex64,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        name: str = "LinearOperatorCirculant",
    ) -> None:
        if block_depth not in (1, 2, 3):
            raise AttributeValueError(
                f"Expected block_depth to be 1, 2 or 3, got {told(block_depth)}"
            )
        self._depth = block_depth
        with name_scope(name):
            self._spectrum = convert_to_tensor(spectrum)
            at_least(self._spectrum, block_depth, "spectrum")
            if not self._spectrum.dtype.is_complex:
                if is_self_adjoint is False:
                    raise AttributeValueError(
                        "A real spectrum always corresponds to a self-adjoint operator."
                    )
                is_self_adjoint = True
            if is_square is False:
                raise AttributeValueError("A [[nested] block] circulant operator is always square.")
            super().__init__(
                as_dtype(input_output_dtype),
                [self._spectrum],
                is_non_singular,
                is_self_adjoint,
                is_positive_definite,
                True,
                name,
            )

    @property
    def block_depth(self) -> int:
        """How many axes the transform has."""
        return self._depth

    @property
    def block_shape(self) -> TensorShape:
        """The static sizes of the axes of the transform."""
        return TensorShape(self._spectrum.shape)[-self._depth :]

    def block_shape_tensor(self) -> Tensor:
        """Return the sizes of the axes of the transform as a tensor."""
        return shape(self._spectrum)[-self._depth :]

    @property
    def spectrum(self) -> Tensor:
        """What each frequency is multiplied by."""
        return self._spectrum

    def convolution_kernel(self, name: str = "convolution_kernel") -> Tensor:
        """Return the kernel with which it convolves.

        Args:
            name: The name of the scope.
        """
        with self._scoped(name):
            made: Tensor = cast(_BACKWARD[self._depth](as_complex(self._spectrum)), self.dtype)
            return made

    def assert_hermitian_spectrum(self, name: str = "assert_hermitian_spectrum") -> Operation:
        """Return an operation that fails where the kernel is not real.

        Args:
            name: The name of the scope.
        """
        with self._scoped(name):
            part = imag(self.convolution_kernel())
            least = float(np.finfo(part.dtype.as_numpy_dtype).eps)
            bound = least * cast(self.domain_dimension_tensor(), part.dtype)
            return assert_less(abs_(part), bound, message="Spectrum was not Hermitian")

    def _shape(self) -> TensorShape:
        known = Shape(self._spectrum.shape)
        if known.rank is None:
            return TensorShape(None)
        block = known[-self._depth :]
        count = int(np.prod(block.known)) if block.is_fully_defined() else None
        return shape_of(known[: -self._depth], [count, count])

    def _shape_tensor(self) -> Tensor:
        sizes = shape(self._spectrum)
        count = reshape(reduce_prod(sizes[-self._depth :]), [1])
        return concat([sizes[: -self._depth], count, count], 0)

    def _assert_non_singular(self) -> Operation:
        return check_no_zeros(self._spectrum, "Singular operator:  Spectrum contained zero values.")

    def _assert_positive_definite(self) -> Operation:
        return assert_positive(
            real(self._spectrum),
            message="Not positive definite:  Real part of spectrum was not all positive.",
        )

    def _assert_self_adjoint(self) -> Operation:
        return check_real(
            self._spectrum,
            "Not self-adjoint:  The spectrum contained non-zero imaginary part.",
        )

    def _transformed(self, x: Tensor, adjoint: bool, divides: bool) -> Tensor:
        """Return columns whose frequencies are multiplied by the spectrum, or divided."""
        spectrum = as_complex(self._spectrum)
        if adjoint:
            spectrum = conj(spectrum)
        columns = cast(x, spectrum.dtype)
        rows = reshape(spectrum, concat([self.batch_shape_tensor(), [-1, 1]], 0))
        columns, rows = alike([columns, rows])
        blocks = concat([shape(columns)[:-2], self.block_shape_tensor()], 0)
        spread = reshape(rows, blocks)
        vectors = _with_axis_first(columns, from_end=True)
        vectors = reshape(vectors, concat([shape(vectors)[:-1], self.block_shape_tensor()], 0))
        vectors.set_shape(self._vector_shape(columns))
        found = _FORWARD[self._depth](vectors)
        found = _BACKWARD[self._depth](found / spread if divides else found * spread)
        flat = reshape(found, concat([shape(found)[: -self._depth], [-1]], 0))
        if columns.shape.ndims is not None:
            flat.set_shape([None] * columns.shape.ndims)
        made = _with_axis_first(flat, from_end=False)
        made.set_shape(columns.shape)
        result: Tensor = cast(made, self.dtype)
        return result

    def _vector_shape(self, columns: Tensor) -> Shape:
        known = Shape(columns.shape)
        if known.rank is None:
            return Shape(None)
        found: Shape = known[-1:].concatenate(known[:-2]).concatenate(Shape(self.block_shape))
        return found

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._transformed(adjoint_of(x) if adjoint_arg else x, adjoint, divides=False)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._transformed(adjoint_of(rhs) if adjoint_arg else rhs, adjoint, divides=True)

    def _axes(self) -> list[int]:
        return list(range(-self._depth, 0))

    def _determinant(self) -> Tensor:
        made: Tensor = cast(reduce_prod(self._spectrum, self._axes()), self.dtype)
        return made

    def _log_abs_determinant(self) -> Tensor:
        made: Tensor = cast(reduce_sum(log(abs_(self._spectrum)), self._axes()), self.dtype)
        return made

    def _diag_part(self) -> Tensor:
        value = self.trace() / cast(self.domain_dimension_tensor(), self.dtype)
        sizes: Any = self.shape_tensor()[:-1]
        if self.shape.is_fully_defined():
            sizes = self.shape.as_list()[:-1]
        return expand_dims(value, -1) * ones(sizes, self.dtype)

    def _trace(self) -> Tensor:
        whole = reduce_sum(real(self._spectrum), self._axes())
        if not self.dtype.is_complex:
            small: Tensor = cast(whole, self.dtype)
            return small
        part = zeros_like(whole)
        if not self.is_self_adjoint:
            part = reduce_sum(imag(self._spectrum), self._axes())
        made: Tensor = cast(complex_(whole, part), self.dtype)
        return made


class LinearOperatorCirculant(_Circulant):
    """A circulant matrix: each row is the one above, moved by one."""

    def __init__(
        self,
        spectrum: Any,
        input_output_dtype: Any = dtypes.complex64,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        name: str = "LinearOperatorCirculant",
    ) -> None:
        """State its spectrum: the Fourier transform of its first column.

        Args:
            spectrum: [..., n], floating or complex.
            input_output_dtype: The dtype of what it multiplies.
            is_non_singular: As for ``LinearOperator``.
            is_self_adjoint: As for ``LinearOperator``; it is for a real spectrum.
            is_positive_definite: As for ``LinearOperator``.
            is_square: It is.
            name: Its name.

        Raises:
            AttributeValueError: if a hint is wrong.
            ShapeError: if the spectrum has too few axes.
        """
        hints = (is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        super().__init__(spectrum, 1, input_output_dtype, *hints, name)

    def _adjoint(self) -> LinearOperator:
        return LinearOperatorCirculant(conj(self._spectrum), self.dtype, *self._hints[:3])

    def _inverse(self) -> LinearOperator:
        made = reciprocal(self._spectrum)
        return LinearOperatorCirculant(made, self.dtype, *self._hints[:3])


class LinearOperatorCirculant2D(_Circulant):
    """A circulant matrix of circulant blocks."""

    def __init__(
        self,
        spectrum: Any,
        input_output_dtype: Any = dtypes.complex64,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        name: str = "LinearOperatorCirculant2D",
    ) -> None:
        """State its spectrum, over two axes.

        Args:
            spectrum: [..., n, m], floating or complex.
            input_output_dtype: The dtype of what it multiplies.
            is_non_singular: As for ``LinearOperator``.
            is_self_adjoint: As for ``LinearOperator``; it is for a real spectrum.
            is_positive_definite: As for ``LinearOperator``.
            is_square: It is.
            name: Its name.

        Raises:
            AttributeValueError: if a hint is wrong.
            ShapeError: if the spectrum has too few axes.
        """
        hints = (is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        super().__init__(spectrum, 2, input_output_dtype, *hints, name)


class LinearOperatorCirculant3D(_Circulant):
    """A circulant matrix of circulant blocks of circulant blocks."""

    def __init__(
        self,
        spectrum: Any,
        input_output_dtype: Any = dtypes.complex64,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        name: str = "LinearOperatorCirculant3D",
    ) -> None:
        """State its spectrum, over three axes.

        Args:
            spectrum: [..., n, m, k], floating or complex.
            input_output_dtype: The dtype of what it multiplies.
            is_non_singular: As for ``LinearOperator``.
            is_self_adjoint: As for ``LinearOperator``; it is for a real spectrum.
            is_positive_definite: As for ``LinearOperator``.
            is_square: It is.
            name: Its name.

        Raises:
            AttributeValueError: if a hint is wrong.
            ShapeError: if the spectrum has too few axes.
        """
        hints = (is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        super().__init__(spectrum, 3, input_output_dtype, *hints, name)
