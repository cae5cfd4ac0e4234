"""Instructions of convolutions and of their gradients, by BLAS on blocks of windows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from headrace import Operation, Tensor
from headrace_cpu.kernels.conv import conv, conv_backprop_filter, conv_backprop_input
from headrace_cpu.windows import blas
from headrace_cpu.windows import convolution_kernels as kernels
from headrace_cpu.windows.geometry import Geometry
from headrace_cpu.windows.instruction import Call, Interpret, WindowInstruction
from headrace_cpu.windows.plan import Plan, plan, plan_to_filter
from headrace_cpu.windows.text import SIZES


def numbers(shape: Geometry) -> dict[str, int]:
    """Return the words of kernels that say where windows lie."""
    return {
        "images": shape.images,
        "height": shape.image[0],
        "width": shape.image[1],
        "channels": shape.channels,
        "out_height": shape.out[0],
        "out_width": shape.out[1],
        "window_height": shape.window[0],
        "window_width": shape.window[1],
        "stride_y": shape.strides[0],
        "stride_x": shape.strides[1],
        "step_y": shape.dilations[0],
        "step_x": shape.dilations[1],
        "top": shape.before[0],
        "left": shape.before[1],
    }


def _runs(shape: Geometry) -> dict[str, int]:
    """Return how the elements of a window's row fall into runs of neighbours."""
    merged = shape.dilations[1] == 1
    width = shape.window[1] if merged else 1
    runs = 1 if merged else shape.window[1]
    return {"runs": runs, "run_width": width, "run": width * shape.channels}


class _Convolution(WindowInstruction):
    """What a convolution and its gradients have in common."""

    def __init__(
        self,
        op: Operation,
        reads: Sequence[Tensor],
        interpret: Interpret,
        threads: int,
        shape: Geometry,
    ) -> None:
        # A BLAS that cannot be kept on one thread takes all of them itself.
        super().__init__(op, reads, interpret, threads if blas.splits() else 1)
        self._shape = shape
        self._dtype = self.writes[0].dtype.name
        self._size = SIZES[self._dtype]

    def flops(self) -> int:
        """Return how many floating-point operations it does."""
        return self._shape.flops

    def around(self, call: Callable[[], object]) -> Callable[[], object]:
        """Keep BLAS on the threads of its callers."""
        return blas.alone(call) if blas.splits() else call

    def _words(self, shape: Geometry, found: Plan) -> dict[str, int]:
        return {
            "gemm": blas.gemm(self._dtype) or 0,
            "filters": shape.filters,
            "scratch_step": found.room,
            "per_chunk": found.per_chunk,
            **_runs(shape),
            **numbers(shape),
        }

    def _convolve(
        self, shape: Geometry, found: Plan, tensors: dict[str, Tensor], scratch: dict[str, int]
    ) -> Call:
        words = self._words(shape, found)
        words |= {"blocks": found.blocks, "is_matmul": int(shape.is_matmul)}
        source = kernels.convolve(self._dtype, words["run"])
        return Call(source, kernels.CONVOLVE, tensors=tensors, scratch=scratch, numbers=words)


class Convolve(_Convolution):
    """A convolution."""

    name = "convolve"

    def __init__(self, op: Operation, shape: Geometry, threads: int) -> None:
        super().__init__(op, op.inputs, conv, threads, shape)
        self._plan = plan(shape, self._size, self._threads, shape.rows, copies=not shape.is_matmul)
        self.scratch = self._plan.room * self._threads

    def calls(self) -> Sequence[Call]:
        """Return the one kernel."""
        activations, filter_ = self._op.inputs
        tensors = {"x": activations, "filter": filter_, "y": self.writes[0]}
        scratch = {"scratch": 0} if self.scratch else {}
        return [self._convolve(self._shape, self._plan, tensors, scratch)]


class ConvolveToActivations(_Convolution):
    """The gradient of a convolution for its activations.

    Without strides it is the convolution of the gradient with the transposed filter. With strides,
    the windows of the gradient are computed in blocks and added up where they lie.
    """

    name = "convolve_to_activations"

    def __init__(self, op: Operation, shape: Geometry, threads: int) -> None:
        super().__init__(op, op.inputs[1:], conv_backprop_input, threads, shape)
        self._transposed = shape.transposed() if shape.strides == (1, 1) else None
        if self._transposed is None:
            rows = math.prod(shape.out)
            self._plan = plan(shape, self._size, 1, rows)
            self._room = 0
        else:
            transposed = self._transposed
            copies = not transposed.is_matmul
            self._plan = plan(transposed, self._size, self._threads, transposed.rows, copies=copies)
            self._room = -(-shape.depth * shape.filters * self._size // 64) * 64
        self.scratch = self._room + self._plan.room * self._threads

    def calls(self) -> Sequence[Call]:
        """Return the kernels: one, or one for the filter and one for the convolution."""
        _, filter_, grad = self._op.inputs
        if self._transposed is None:
            return [self._add_up(filter_, grad)]
        shape = self._shape
        transpose = Call(
            kernels.transpose(self._dtype),
            kernels.TRANSPOSE,
            tensors={"filter": filter_},
            scratch={"transposed": 0},
            numbers={
                "elements": math.prod(shape.window),
                "channels": shape.channels,
                "filters": shape.filters,
            },
        )
        tensors = {"x": grad, "y": self.writes[0]}
        scratch = {"filter": 0, "scratch": self._room}
        return [transpose, self._convolve(self._transposed, self._plan, tensors, scratch)]

    def _add_up(self, filter_: Tensor, grad: Tensor) -> Call:
        words: dict[str, Any] = self._words(self._shape, self._plan)
        words["block_rows"] = self._plan.block_rows
        return Call(
            kernels.to_activations(self._dtype, words["run"]),
            kernels.TO_ACTIVATIONS,
            tensors={"grad": grad, "filter": filter_, "x": self.writes[0]},
            scratch={"scratch": 0},
            numbers=words,
        )


class ConvolveToFilter(_Convolution):
    """The gradient of a convolution for its filter."""

    name = "convolve_to_filter"

    def __init__(self, op: Operation, shape: Geometry, threads: int) -> None:
        super().__init__(op, (op.inputs[0], op.inputs[2]), conv_backprop_filter, threads, shape)
        self._plan = plan_to_filter(shape, self._size, self._threads)
        parts = (self._plan.row_splits - 1) * shape.depth * shape.filters * self._size
        self._parts = -(-parts // 64) * 64
        self.scratch = self._parts + self._plan.room * self._threads

    def calls(self) -> Sequence[Call]:
        """Return the one kernel."""
        activations, _, grad = self._op.inputs
        words = self._words(self._shape, self._plan)
        words |= {
            "row_splits": self._plan.row_splits,
            "filter_splits": self._plan.filter_splits,
            "block_rows": self._plan.block_rows,
            "is_matmul": int(self._shape.is_matmul),
        }
        scratch = {"partial": 0, "scratch": self._parts} if self.scratch else {}
        call = Call(
            kernels.to_filter(self._dtype, words["run"]),
            kernels.TO_FILTER,
            tensors={"x": activations, "grad": grad, "filter": self.writes[0]},
            scratch=scratch,
            numbers=words,
        )
        return [call]
