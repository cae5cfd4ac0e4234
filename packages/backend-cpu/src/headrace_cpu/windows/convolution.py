"""Instructions of convolutions and of their gradients, by BLAS on blocks of windows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
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
        words |= {"blocks": found.blocks, "product": int(shape.is_product)}
        source = kernels.convolve(self._dtype, words["run"])
        return Call(source, kernels.CONVOLVE, tensors=tensors, scratch=scratch, numbers=words)


class Convolve(_Convolution):
    """A convolution."""

    name = "convolve"

    def __init__(self, op: Operation, shape: Geometry, threads: int) -> None:
        super().__init__(op, op.inputs, conv, threads, shape)
        self._plan = plan(shape, self._size, self._threads, shape.rows, copies=not shape.is_product)
        self.scratch = self._plan.room * self._threads

    def calls(self) -> Sequence[Call]:
        """Return the one kernel."""
        images, taps = self._op.inputs
        tensors = {"x": images, "filter": taps, "y": self.writes[0]}
        scratch = {"scratch": 0} if self.scratch else {}
        return [self._convolve(self._shape, self._plan, tensors, scratch)]


class ConvolveToImages(_Convolution):
    """The gradient of a convolution for its images.

    Without strides it is the convolution of the gradient with the turned filter. With strides, the
    windows of the gradient are computed in blocks and added up where they lie.
    """

    name = "convolve_to_images"

    def __init__(self, op: Operation, shape: Geometry, threads: int) -> None:
        super().__init__(op, op.inputs[1:], conv_backprop_input, threads, shape)
        self._turned = shape.transposed() if shape.strides == (1, 1) else None
        if self._turned is None:
            rows = math.prod(shape.out)
            self._plan = plan(shape, self._size, 1, rows)
            self._room = 0
        else:
            turned = self._turned
            copies = not turned.is_product
            self._plan = plan(turned, self._size, self._threads, turned.rows, copies=copies)
            self._room = -(-shape.depth * shape.filters * self._size // 64) * 64
        self.scratch = self._room + self._plan.room * self._threads

    def calls(self) -> Sequence[Call]:
        """Return the kernels: one, or one for the filter and one for the convolution."""
        _, taps, grad = self._op.inputs
        if self._turned is None:
            return [self._add_up(taps, grad)]
        shape = self._shape
        turn = Call(
            kernels.turn(self._dtype),
            kernels.TURN,
            tensors={"filter": taps},
            scratch={"turned": 0},
            numbers={
                "taps": math.prod(shape.window),
                "channels": shape.channels,
                "filters": shape.filters,
            },
        )
        tensors = {"x": grad, "y": self.writes[0]}
        scratch = {"filter": 0, "scratch": self._room}
        return [turn, self._convolve(self._turned, self._plan, tensors, scratch)]

    def _add_up(self, taps: Tensor, grad: Tensor) -> Call:
        words: dict[str, Any] = self._words(self._shape, self._plan)
        words["block_rows"] = self._plan.block_rows
        return Call(
            kernels.to_images(self._dtype, words["run"]),
            kernels.TO_IMAGES,
            tensors={"grad": grad, "filter": taps, "x": self.writes[0]},
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
        images, _, grad = self._op.inputs
        words = self._words(self._shape, self._plan)
        words |= {
            "row_splits": self._plan.row_splits,
            "filter_splits": self._plan.filter_splits,
            "block_rows": self._plan.block_rows,
            "product": int(self._shape.is_product),
        }
        scratch = {"partial": 0, "scratch": self._parts} if self.scratch else {}
        call = Call(
            kernels.to_filter(self._dtype, words["run"]),
            kernels.TO_FILTER,
            tensors={"x": images, "grad": grad, "filter": self.writes[0]},
            scratch=scratch,
            numbers=words,
        )
        return [call]
