"""Kernels of pools, in CUDA C++: one thread for each element that is written, or for four.

Threads go along the last axis of what they write, so that neighbours read and write neighbours.
Where the channels are last and a multiple of four, a thread has four of them: it finds out once
where they lie, and moves 16 bytes at a time. All sizes are constants of the source. Every element
is summed up by one thread in one order, that of the plain kernels, so that results are equal in
every run, and equal to theirs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import indent

from headrace_cpu.kernels.windows import Windows
from headrace_cuda.program.each import NUMBER
from headrace_cuda.program.platform import CudaSource

# Elements of these dtypes are pooled.
KINDS = {"float32": "float", "float64": "double"}
# Windows of more elements than a byte counts have places of 4 bytes.
_MOST_OF_A_BYTE = 255
# Numbers of 32 bits, which are divided several times as fast, count up to so many elements.
_MOST_OF_AN_INT = 2**30
# How many channels a thread has where it may.
_LANES = 4


@dataclass(frozen=True, slots=True)
class PoolShape:
    """A pool of images.

    Attributes:
        windows: Where the windows lie.
        images: How many images there are.
        channels: Of the images.
        first: Whether the channels are the first axis of an image, not the last.
        dtype: Of the elements.
        lanes: How many channels a thread has.
    """

    windows: Windows
    images: int
    channels: int
    first: bool
    dtype: str
    lanes: int = 1

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

    @property
    def most_lanes(self) -> int:
        """How many channels a thread may have, where they are aligned."""
        fits = not self.first and self.channels % _LANES == 0 and self.dtype == "float32"
        return _LANES if fits else 1


def max_pool(shape: PoolShape) -> CudaSource:
    """Return the kernel ``(x, y)`` of the maxima of windows; NaN where a window holds one."""
    body = _lanes("if (v.of[l] > best.of[l] || v.of[l] != v.of[l]) best.of[l] = v.of[l];")
    parts = [
        "VALUES best;\n",
        _lanes("best.of[l] = -(T)(1e300 * 1e300);"),
        _over_windows(shape, body),
        _store("y", "best"),
    ]
    return _kernel(shape, "const T *x, T *y", parts, shape.windows.out, "o")


def max_places(shape: PoolShape) -> CudaSource:
    """Return the kernel ``(x, places)`` of where the first maximum of each window is.

    Places are counted through a window. NaN counts as the maximum, and padding never does.
    """
    better = "v.of[l] > best.of[l] || (v.of[l] != v.of[l] && best.of[l] == best.of[l])"
    body = _lanes(
        f"if (at.of[l] == (PLACE)-1 || {better}) {{\n"
        "    best.of[l] = v.of[l];\n"
        f"    at.of[l] = (PLACE)({_place(shape)});\n"
        "}"
    )
    parts = [
        "VALUES best;\nPLACES at;\n",
        _lanes("best.of[l] = 0;\nat.of[l] = (PLACE)-1;"),
        _over_windows(shape, body),
        _store("places", "at", "PLACES"),
    ]
    return _kernel(shape, "const T *x, PLACE *places", parts, shape.windows.out, "o")


def max_pool_grad(shape: PoolShape) -> CudaSource:
    """Return the kernel ``(places, grad, x)`` of the gradient at the places of ``max_places``."""
    text = (
        f"const INDEX from = {_offset(shape, 'o', shape.windows.out)};\n"
        "const PLACES at = *(const PLACES *)(places + from);\n"
        "const VALUES g = *(const VALUES *)(grad + from);\n"
        + _lanes(f"if (at.of[l] == (PLACE)({_place(shape)})) total.of[l] += g.of[l];")
    )
    for axis in reversed(range(len(shape.windows.sizes))):
        text = _output_loop(shape, axis, text)
    parts = ["VALUES total;\n", _lanes("total.of[l] = 0;"), text, _store("x", "total")]
    parameters = "const PLACE *places, const T *grad, T *x"
    return _kernel(shape, parameters, parts, shape.windows.image, "i")


def avg_pool(shape: PoolShape) -> CudaSource:
    """Return the kernel ``(x, y)`` of the means of windows, in which padding does not count."""
    last = len(shape.windows.sizes) - 1
    # As the plain kernel has it: each axis adds up the sums along the axes in front of it.
    text = f"const VALUES v = *(const VALUES *)(x + {_offset(shape, 'i', shape.windows.image)});\n"
    text += _lanes("sum0.of[l] += v.of[l];")
    for axis in range(last + 1):
        more = "" if axis == last else _lanes(f"sum{axis + 1}.of[l] += sum{axis}.of[l];")
        text = _zero(f"sum{axis}") + _window_loop(shape, axis, text) + more
    share = _lanes(f"sum{last}.of[l] = {_share(shape, f'sum{last}.of[l]')};")
    parts = [_starts(shape), text, share, _store("y", f"sum{last}")]
    return _kernel(shape, "const T *x, T *y", parts, shape.windows.out, "o")


def avg_pool_grad(shape: PoolShape) -> CudaSource:
    """Return the kernel ``(grad, x)`` of the gradient of means."""
    last = len(shape.windows.sizes) - 1
    text = f"const VALUES g = *(const VALUES *)(grad + {_offset(shape, 'o', shape.windows.out)});\n"
    text += _lanes(f"sum{last}.of[l] += {_share(shape, 'g.of[l]')};")
    for axis in reversed(range(last + 1)):
        more = "" if axis == 0 else _lanes(f"sum{axis - 1}.of[l] += sum{axis}.of[l];")
        text = _zero(f"sum{axis}") + _output_loop(shape, axis, text) + more
    parts = [text, _store("x", "sum0")]
    return _kernel(shape, "const T *grad, T *x", parts, shape.windows.image, "i")


# -- texts


def _kernel(
    shape: PoolShape, parameters: str, parts: Sequence[str], sizes: Sequence[int], letter: str
) -> CudaSource:
    """Return a kernel of one thread for the channels that it has of images of some size.

    Args:
        shape: The pool.
        parameters: Of the kernel.
        parts: What a thread does.
        sizes: Of the images that are written.
        letter: In front of the number of an axis, the element's place along it.
    """
    lanes = shape.lanes
    total = shape.images * shape.channels * math.prod(sizes) // lanes
    lines = [f"if (number >= {total}LL) return;", "INDEX rest = (INDEX)number;"]
    for name, size in reversed(_axes(shape, letter, sizes)):
        step = f" * {lanes}" if name == "c" and lanes > 1 else ""
        count = size // lanes if name == "c" else size
        lines += [f"const INDEX {name} = rest % {count}{step};", f"rest /= {count};"]
    lines.append("const INDEX n = rest;")
    body = "\n".join(lines) + "\n" + "".join(parts)
    text = (
        "struct alignas(LANES * sizeof(T)) VALUES { T of[LANES]; };\n"
        "struct alignas(LANES * sizeof(PLACE)) PLACES { PLACE of[LANES]; };\n"
        f'extern "C" __global__ void KERNEL({parameters}) {{\n'
        f"    const long long number = {NUMBER};\n"
        f"{indent(body, '    ')}}}\n"
    )
    large = max(shape.inputs, shape.outputs) >= _MOST_OF_AN_INT
    words = {
        # Kernels share a program, so that the names of types have to be their own.
        "VALUES": "KERNEL_values",
        "PLACES": "KERNEL_places",
        "PLACE": shape.place,
        "INDEX": "long long" if large else "int",
        "LANES": str(lanes),
        "T": KINDS[shape.dtype],
    }
    return CudaSource.of(re.sub(rf"\b({'|'.join(words)})\b", lambda m: words[m[1]], text))


def _axes(shape: PoolShape, letter: str, sizes: Sequence[int]) -> list[tuple[str, int]]:
    """Return the names and sizes of an image's axes, in their order in memory."""
    axes = [(f"{letter}{axis}", size) for axis, size in enumerate(sizes)]
    channels = [("c", shape.channels)]
    return [*channels, *axes] if shape.first else [*axes, *channels]


def _offset(shape: PoolShape, letter: str, sizes: Sequence[int]) -> str:
    """Return where an element lies in images of some size."""
    text = "n"
    for name, size in _axes(shape, letter, sizes):
        text = f"({text} * {size} + {name})"
    return text


def _lanes(text: str) -> str:
    """Return what is done for every channel of a thread, ``l``."""
    return f"for (int l = 0; l < LANES; ++l) {{\n{indent(text, '    ')}\n}}\n"


def _zero(name: str) -> str:
    return f"VALUES {name};\n" + _lanes(f"{name}.of[l] = 0;")


def _store(name: str, values: str, kind: str = "VALUES") -> str:
    """Return what writes the thread's elements."""
    return f"*({kind} *)({name} + number * LANES) = {values};\n"


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
    """Return the loops over the elements of a window, in order; ``v`` are the elements."""
    where = _offset(shape, "i", shape.windows.image)
    text = f"const VALUES v = *(const VALUES *)(x + {where});\n" + body
    for axis in reversed(range(len(shape.windows.sizes))):
        text = _window_loop(shape, axis, text)
    return _starts(shape) + text


def _output_loop(shape: PoolShape, axis: int, body: str) -> str:
    """Return a loop over the windows along an axis that an element of the image belongs to.

    They come in the order of the element's places in them, ``k``, from the first one on.
    """
    windows = shape.windows
    size, out = windows.sizes[axis], windows.out[axis]
    stride, step = windows.strides[axis], windows.dilations[axis]
    reach = f"(i{axis} + {windows.before[axis]})"
    if step == 1:
        # Only these windows may hold it: the last one that begins before it, and those in front.
        head = (
            f"for (int j{axis} = 0; j{axis} < {-(-size // stride)}; ++j{axis}) {{\n"
            f"    const INDEX o{axis} = {reach} / {stride} - j{axis};\n"
            f"    const int k{axis} = (int)({reach} - o{axis} * {stride});\n"
            f"    if (o{axis} < 0 || k{axis} >= {size} || o{axis} >= {out}) continue;\n"
        )
    else:
        uneven = f" || t{axis} % {stride} != 0" if stride != 1 else ""
        head = (
            f"for (int k{axis} = 0; k{axis} < {size}; ++k{axis}) {{\n"
            f"    const INDEX t{axis} = {reach} - k{axis} * {step};\n"
            f"    if (t{axis} < 0{uneven}) continue;\n"
            f"    const INDEX o{axis} = t{axis} / {stride};\n"
            f"    if (o{axis} >= {out}) continue;\n"
        )
    return f"{head}{indent(body, '    ')}}}\n"


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
