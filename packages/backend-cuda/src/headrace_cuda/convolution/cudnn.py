"""Convolutions by cuDNN, through its Python frontend.

A convolution is a graph of one node, for which cuDNN lists engines, the best first. The first that
is allowed and needs no more scratch memory than there may be computes it. Building one takes some
milliseconds; equal convolutions of a process have it together.

References:
    https://docs.nvidia.com/deeplearning/cudnn/frontend/latest/
"""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace.errors import ExecutionError
from headrace_cuda.convolution.library import ConvolutionPlaces, ConvolutionShape, Direction
from headrace_cuda.program.platform import Streaming

# Without tensor cores, the quickest engines for the layers of VGG took up to 750 MB.
MOST_SCRATCH = 1 << 30
# How many of the plans that heuristics put first are tried: of gradients of filters the quickest
# is often not the first.
_PLANS = 10
_OPERANDS = ("activations", "out", "filter")
# A number of 13 significant bits, and how many elements of a result are looked at for it.
_PROBE = np.float32(1 + 2**-12)
_SAMPLE = 1 << 18


@functools.cache
def _frontend() -> Any:
    """Return the module, None where it or cuDNN is not installed."""
    try:
        import cudnn

        # Asked of the library, which the import of the module may not have found.
        cudnn.backend_version()
    except (ImportError, OSError, RuntimeError):
        return None
    return cudnn


def cudnn_version() -> str | None:
    """Return cuDNN's version, as in "9.19.0"; None where it or its frontend is not installed."""
    module = _frontend()
    if module is None:
        return None
    number = int(module.backend_version())
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def open_cudnn(gpu: Streaming) -> Cudnn | None:
    """Return cuDNN on the GPU that is active, None where it is not installed.

    Args:
        gpu: Has the handle of the stream on which the calling thread starts work.

    Raises:
        ExecutionError: if it does not start.
    """
    module = _frontend()
    return None if module is None else Cudnn(gpu, module)


class Cudnn:
    """cuDNN on the GPU that is active.

    Args:
        gpu: Has the handle of the stream on which the calling thread starts work.
        module: The frontend, ``cudnn``.
        fuses: Whether it is asked for convolutions with a bias and a rectifier. Engines for these
            are compiled when they are built, and whether their rectifier keeps NaN is theirs.

    Raises:
        ExecutionError: if it does not start.
    """

    def __init__(self, gpu: Streaming, module: Any, fuses: bool = False) -> None:
        self._gpu, self._module, self._fuses = gpu, module, fuses
        # A handle works for one thread at a time.
        self._lock = threading.Lock()
        try:
            self._handle = module.create_handle()
        except Exception as error:
            raise ExecutionError(f"cuDNN does not start: {error}") from error
        self._find = functools.lru_cache(None)(self._build)

    def plan(self, shape: ConvolutionShape) -> CudnnConvolution | None:
        """Prepare a convolution; None where cuDNN has none of this kind.

        Raises:
            ExecutionError: if cuDNN fails.
        """
        if (shape.bias or shape.relu) and not self._fuses:
            return None
        with self._lock:
            return self._find(shape)

    def execute(self, built: _Built, places: ConvolutionPlaces, scratch: int) -> None:
        """Start a convolution on the stream.

        Raises:
            ExecutionError: if cuDNN refuses it.
        """
        addresses = {tensor: getattr(places, name) for name, tensor in built.tensors.items()}
        with self._lock:
            try:
                self._run(built, addresses, scratch)
            except Exception as error:
                raise ExecutionError(f"cuDNN fails: {error}\n  {built.shape}") from error

    def _build(self, shape: ConvolutionShape) -> CudnnConvolution | None:
        built = _graph(self._module, self._handle, shape)
        graph, unsupported = built.graph, self._module.cudnnGraphNotSupportedError
        heuristics = self._module.heur_mode
        try:
            graph.validate()
            graph.build_operation_graph()
            graph.create_execution_plans([heuristics.A, heuristics.FALLBACK])
            numeric = self._refused_numerics(shape)
            if numeric:
                graph.deselect_numeric_notes(numeric)
            graph.deselect_workspace_greater_than(MOST_SCRATCH)
            graph.check_support()
            graph.build_plans()
            tried = not shape.deterministic or shape.precision == "highest"
            if tried and not self._choose(built, unsupported):
                return None
            scratch = int(graph.get_workspace_size())
        except unsupported:
            return None
        except Exception as error:
            # What is wrong with a graph is told by exceptions of many kinds.
            raise ExecutionError(f"cuDNN fails: {error}\n  {shape}") from error
        return None if scratch > MOST_SCRATCH else CudnnConvolution(self, built, scratch)

    def _choose(self, built: _Built, unsupported: type[Exception]) -> bool:
        """Build the quickest of the first plans, on memory that is there for as long as that.

        Where there is no room to try, the plan that is built stays. Where equal bits are asked for,
        it is the first one that is exact enough.

        Returns:
            Whether one works.
        """
        graph, gpu = built.graph, self._gpu
        sizes = {name: math.prod(tensor.get_dim()) * 4 for name, tensor in built.tensors.items()}
        try:
            memory = {name: gpu.allocate(size) for name, size in sizes.items()}
        except ExecutionError:
            return True
        addresses = {t: gpu.address(memory[name]) for name, t in built.tensors.items()}
        best: tuple[float, int] | None = None
        tried = 0
        # Those that are refused by their properties are in the list, too: they are not built.
        for index in range(graph.get_execution_plan_count()):
            if tried == _PLANS:
                break
            memory.pop("scratch", None)
            try:
                graph.build_plan_at_index(index)
                scratch = int(graph.get_workspace_size())
                if scratch > MOST_SCRATCH:
                    continue
                memory["scratch"] = gpu.allocate(max(1, scratch))
                run = functools.partial(self._run, built, addresses, gpu.address(memory["scratch"]))
                if built.shape.precision == "highest" and not self._is_exact(built, run, memory):
                    continue
                if built.shape.deterministic:
                    return True
                tried += 1
                seconds = gpu.measure(run)
            except (unsupported, RuntimeError, ExecutionError):
                # Some are found not to work when they run.
                continue
            if best is None or seconds < best[0]:
                best = seconds, index
        if best is None:
            return False
        graph.build_plan_at_index(best[1])
        return True

    def _is_exact(self, built: _Built, run: Callable[[], None], memory: Mapping[str, Any]) -> bool:
        """Whether a plan takes all bits of its operands.

        One element of the first operand and all of the second are a number that has 13 significant
        bits: where it is rounded to the 11 of TF32, its product with itself shows it.
        """
        gpu = self._gpu
        first, second, *_ = [name for name in _OPERANDS if name != built.written]
        views = {
            name: gpu.view(gpu.address(memory[name]), (array.size // 4,), np.float32, array)
            for name, array in memory.items()
            if name != "scratch"
        }
        views[first].fill(0.0)
        views[first][:1] = _PROBE
        views[second].fill(_PROBE)
        run()
        sample = gpu.download(views[built.written][:_SAMPLE])
        # Algorithms that transform operands leave something that is nearly 0.
        found = sample[np.abs(sample) > 0.5]
        return bool((np.abs(found - _PROBE**2) < 6e-5).all())

    def _run(self, built: _Built, addresses: Mapping[Any, int], scratch: int) -> None:
        self._module.set_stream(handle=self._handle, stream=self._gpu.stream)
        built.graph.execute(addresses, scratch, handle=self._handle)

    def _refused_numerics(self, shape: ConvolutionShape) -> list[Any]:
        """Return the properties that an engine must not have."""
        notes = self._module.numerical_note
        # Some engines that round their operands have neither note: ``_is_exact`` finds them.
        exact = [notes.TENSOR_CORE, notes.DOWN_CONVERT_INPUTS]
        return [
            *(exact if shape.precision == "highest" else []),
            *([notes.NONDETERMINISTIC] if shape.deterministic else []),
        ]


class CudnnConvolution:
    """A convolution by cuDNN.

    Attributes:
        scratch: Bytes of scratch memory that it needs while it runs.
        name: What computes it.
    """

    name = "cuDNN"

    def __init__(self, library: Cudnn, built: _Built, scratch: int) -> None:
        self._library, self._built = library, built
        self.scratch = scratch

    def start(self, places: ConvolutionPlaces, scratch: int) -> None:
        """Start it on the stream; see ``Convolution``."""
        self._library.execute(self._built, places, scratch)


@dataclass(frozen=True, slots=True)
class _Built:
    """A graph of cuDNN.

    Attributes:
        shape: What it computes.
        graph: The graph.
        tensors: Its tensors, by the names of their addresses.
        written: Which of them is the result.
    """

    shape: ConvolutionShape
    graph: Any
    tensors: dict[str, Any]
    written: str


def _graph(module: Any, handle: Any, shape: ConvolutionShape) -> _Built:
    """Return the graph of a convolution, which is not yet built."""
    kind = module.data_type.FLOAT
    graph = module.pygraph(
        io_data_type=kind, intermediate_data_type=kind, compute_data_type=kind, handle=handle
    )
    # cuDNN names axes in the order n, c, h, w, whatever their order in memory.
    dims = {
        "activations": (shape.images, shape.channels, *shape.image),
        "filter": (shape.filters, shape.channels // shape.groups, *shape.window),
        "out": (shape.images, shape.filters, *shape.out),
        "bias": (1, shape.filters, 1, 1),
    }
    geometry = {
        "pre_padding": list(shape.before),
        "post_padding": list(shape.after),
        "stride": list(shape.strides),
        "dilation": list(shape.dilations),
    }

    def given(name: str) -> Any:
        sizes = dims[name]
        return graph.tensor(
            name=name, dim=list(sizes), stride=_channels_last(sizes), data_type=kind
        )

    if shape.direction is Direction.FORWARD:
        written, tensors = "out", {"activations": given("activations"), "filter": given("filter")}
        made = graph.conv_fprop(image=tensors["activations"], weight=tensors["filter"], **geometry)
        if shape.bias:
            tensors["bias"] = given("bias")
            made = graph.bias(input=made, bias=tensors["bias"])
        if shape.relu:
            made = graph.relu(input=made)
    elif shape.direction is Direction.TO_ACTIVATIONS:
        written, tensors = "activations", {"out": given("out"), "filter": given("filter")}
        made = graph.conv_dgrad(loss=tensors["out"], filter=tensors["filter"], **geometry)
    else:
        written, tensors = "filter", {"activations": given("activations"), "out": given("out")}
        made = graph.conv_wgrad(image=tensors["activations"], loss=tensors["out"], **geometry)
    sizes = dims[written]
    made.set_output(True).set_data_type(kind).set_dim(list(sizes))
    made.set_stride(_channels_last(sizes))
    return _Built(shape, graph, {**tensors, written: made}, written)


def _channels_last(sizes: Sequence[int]) -> list[int]:
    """Return the strides of [n, c, h, w] that lies in memory as [n, h, w, c]."""
    _, c, h, w = sizes
    return [h * w * c, 1, w * c, c]
