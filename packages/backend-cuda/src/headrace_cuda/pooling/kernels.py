"""Kernels of pools, in CUDA C++: one thread for each element that is written.

Threads go along the last axis of what they write, so that neighbours read and write neighbours. All
sizes are constants of the source. Every element is summed up by one thread in one order, that of
the plain kernels, so that results are equal in every run, and equal to theirs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import indent

from headrace_cpu.kernels.windows import Windows
from headrace_cuda.program.platform import CudaSource

# Elements of these dtypes are pooled.
KINDS = {"float32": "float", "float64": "double"}
# Windows of more elements than a byte counts have places of 4 bytes.
_MOST_OF_A_BYTE = 255


@dataclass(frozen=True, slots=True)
class PoolShape:
    """A pool of images.

    Attributes:
        windows: Where the windows lie.
        images: How many images there are.
        channels: Of the images.
        first: Whether the channels are the first axis of an image, not the last.
        dtype: Of the elements.
    """

    windows: Windows
    images: int
    channels: int
    first: bool
    dtype: str

    @property
    def inputs(self) -> int:
        """Elements of the images."""
        return self.images * self.channels * math.prod(self.windows.image)

    @property
    def outputs(self) -> int:
        """Elements of the result."""
        return self.images * self.channels * math.prod(self.windows.out)

    @property
    def place(self) -> str:
        """The type of places in a window."""
        return "unsigned char" if math.prod(self.windows.sizes) <= _MOST_OF_A_BYTE else "int"

    @property
    def place_size(self) -> int:
        """Bytes of a place."""
        return 1 if self.place == "unsigned char" else 4


def max_pool(shape: PoolShape) -> CudaSource:
    """Return the kernel ``(x, y)`` of the maxima of windows; NaN where a window holds one."""
    body = """\
if (v > best || v != v) best = v;
"""
    return _kernel(
        shape,
        "const T *x, T *y",
        [
            "T best = -(T)(1e300 * 1e300);\n",
            _over_windows(shape, body),
            "y[number] = best;\n",
        ],
        shape.windows.out,
        "o",
    )


def max_places(shape: PoolShape) -> CudaSource:
    """Return the kernel ``(x, places)`` of where the first maximum of each window is.

    Places are counted through a window. NaN counts as the maximum, and padding never does.
    """
    body = f"""\
if (at == (PLACE)-1 || v > best || (v != v && best == best)) {{
    best = v;
    at = (PLACE)({_place(shape)});
}}
"""
    return _kernel(
        shape,
        "const T *x, PLACE *places",
        [
            "T best = 0;\nPLACE at = (PLACE)-1;\n",
            _over_windows(shape, body),
            "places[number] = at;\n",
        ],
        shape.windows.out,
        "o",
    )


def max_pool_grad(shape: PoolShape) -> CudaSource:
    """Return the kernel ``(places, grad, x)`` of the gradient at the places of ``max_places``."""
    text = f"""\
const INDEX from = {_offset(shape, "o", shape.windows.out)};
if (places[from] == (PLACE)({_place(shape)})) total += grad[from];
"""
    return _kernel(
        shape,
        "const PLACE *places, const T *grad, T *x",
        ["T total = 0;\n", _over_outputs(shape, text), "x[number] = total;\n"],
        shape.windows.image,
        "i",
    )


def avg_pool(shape: PoolShape) -> CudaSource:
    """Return the kernel ``(x, y)`` of the means of windows, in which padding does not count."""
    axes = range(len(shape.windows.sizes))
    # As the plain kernel has it: each axis adds up the sums along the axes in front of it.
    text = f"sum0 += x[{_offset(shape, 'i', shape.windows.image)}];\n"
    for axis in axes:
        more = "" if axis == len(axes) - 1 else f"sum{axis + 1} += sum{axis};\n"
        text = f"T sum{axis} = 0;\n" + _window_loop(shape, axis, text) + more
    last = f"sum{len(axes) - 1}"
    return _kernel(
        shape,
        "const T *x, T *y",
        [_starts(shape), text, f"y[number] = {_share(shape, last)};\n"],
        shape.windows.out,
        "o",
    )


def avg_pool_grad(shape: PoolShape) -> CudaSource:
    """Return the kernel ``(grad, x)`` of the gradient of means."""
    last = len(shape.windows.sizes) - 1
    value = _share(shape, f"grad[{_offset(shape, 'o', shape.windows.out)}]")
    text = f"sum{last} += {value};\n"
    for axis in reversed(range(last + 1)):
        more = "" if axis == 0 else f"sum{axis - 1} += sum{axis};\n"
        text = f"T sum{axis} = 0;\n" + _output_loop(shape, axis, text) + more
    return _kernel(
        shape,
        "const T *grad, T *x",
        [text, "x[number] = sum0;\n"],
        shape.windows.image,
        "i",
    )


# -- texts


def _kernel(
    shape: PoolShape, parameters: str, parts: Sequence[str], sizes: Sequence[int], letter: str
) -> CudaSource:
    """Return a kernel of one thread for each element of images of some size.

    Args:
        shape: The pool.
        parameters: Of the kernel.
        parts: What a thread does.
        sizes: Of the images that are written.
        letter: In front of the number of an axis, the element's place along it.
    """
    total = shape.images * shape.channels * math.prod(sizes)
    axes = [(f"{letter}{axis}", size) for axis, size in enumerate(sizes)]
    order = [("c", shape.channels), *axes] if shape.first else [*axes, ("c", shape.channels)]
    lines = [f"if (number >= {total}LL) return;", "INDEX rest = (INDEX)number;"]
    for name, size in reversed(order):
        lines += [f"const INDEX {name} = rest % {size};", f"rest /= {size};"]
    lines.append("const INDEX n = rest;")
    body = "\n".join(lines) + "\n" + "".join(parts)
    text = (
        f'extern "C" __global__ void KERNEL({parameters}) {{\n'
        "    const long long number = (long long)blockIdx.x * blockDim.x + threadIdx.x;\n"
        f"{indent(body, '    ')}}}\n"
    )
    # Numbers of 32 bits are divided several times as fast.
    index = "int" if max(shape.inputs, shape.outputs) < 2**30 else "long long"
    for word, kind in (("PLACE", shape.place), ("INDEX", index), ("T", KINDS[shape.dtype])):
        text = re.sub(rf"\b{word}\b", kind, text)
    return CudaSource.of(text)


def _offset(shape: PoolShape, letter: str, sizes: Sequence[int]) -> str:
    """Return where an element lies in images of some size."""
    axes = [(f"{letter}{axis}", size) for axis, size in enumerate(sizes)]
    order = [("c", shape.channels), *axes] if shape.first else [*axes, ("c", shape.channels)]
    text = "n"
    for name, size in order:
        text = f"({text} * {size} + {name})"
    return text


def _place(shape: PoolShape) -> str:
    """Return the number of an element in its window."""
    text = "k0"
    for axis, size in enumerate(shape.windows.sizes[1:], 1):
        text = f"({text} * {size} + k{axis})"
    return text


def _starts(shape: PoolShape) -> str:
    """Return where the window of an output begins."""
    strides, before = shape.windows.strides, shape.windows.before
    return "".join(
        f"const INDEX s{axis} = o{axis} * {strides[axis]} - {before[axis]};\n"
        for axis in range(len(strides))
    )


def _window_loop(shape: PoolShape, axis: int, body: str) -> str:
    """Return a loop over the elements of a window along an axis that lie inside the image."""
    windows = shape.windows
    return (
        f"for (int k{axis} = 0; k{axis} < {windows.sizes[axis]}; ++k{axis}) {{\n"
        f"    const INDEX i{axis} = s{axis} + k{axis} * {windows.dilations[axis]};\n"
        f"    if (i{axis} < 0 || i{axis} >= {windows.image[axis]}) continue;\n"
        f"{indent(body, '    ')}}}\n"
    )


def _over_windows(shape: PoolShape, body: str) -> str:
    """Return the loops over the elements of a window, in order; ``v`` is the element."""
    text = f"const T v = x[{_offset(shape, 'i', shape.windows.image)}];\n" + body
    for axis in reversed(range(len(shape.windows.sizes))):
        text = _window_loop(shape, axis, text)
    return _starts(shape) + text


def _output_loop(shape: PoolShape, axis: int, body: str) -> str:
    """Return a loop over the windows along an axis that an element of the image belongs to."""
    windows = shape.windows
    stride, step = windows.strides[axis], windows.dilations[axis]
    uneven = f" || t{axis} % {stride} != 0" if stride != 1 else ""
    return (
        f"for (int k{axis} = 0; k{axis} < {windows.sizes[axis]}; ++k{axis}) {{\n"
        f"    const INDEX t{axis} = i{axis} + {windows.before[axis]} - k{axis} * {step};\n"
        f"    if (t{axis} < 0{uneven}) continue;\n"
        f"    const INDEX o{axis} = t{axis} / {stride};\n"
        f"    if (o{axis} >= {windows.out[axis]}) continue;\n"
        f"{indent(body, '    ')}}}\n"
    )


def _over_outputs(shape: PoolShape, body: str) -> str:
    for axis in reversed(range(len(shape.windows.sizes))):
        body = _output_loop(shape, axis, body)
    return body


def _share(shape: PoolShape, value: str) -> str:
    """Return a value divided by how many elements of the window are no padding, at least 1."""
    windows = shape.windows
    if not windows.has_padding:
        return f"{value} / (T){math.prod(windows.sizes)}"
    for axis, size in enumerate(windows.sizes):
        value += f" / (T)({_count(shape, axis, size)})"
    return value


def _count(shape: PoolShape, axis: int, size: int) -> str:
    """Return how many elements of a window along an axis are no padding, at least 1."""
    windows = shape.windows
    step, image = windows.dilations[axis], windows.image[axis]
    start = f"(o{axis} * {windows.strides[axis]} - {windows.before[axis]})"
    low = f"({start} < 0 ? (-{start} + {step - 1}) / {step} : 0)"
    reach = f"({image} - {start} + {step - 1}) / {step}"
    high = f"({image} <= {start} ? 0 : {reach} < {size} ? {reach} : {size})"
    return f"{high} - {low} < 1 ? 1 : {high} - {low}"
