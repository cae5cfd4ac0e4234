"""The convolutions and products of a training step at oneDNN's speed, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.networks import layers as lay
from benchmarks.networks.tasks import TASKS, Task
from benchmarks.onednn import Library, Shape
from benchmarks.participant import Participant, Request, StepLoop


def build(request: Request) -> Participant:
    """Set up all passes of all layers, each on buffers of its own."""
    task = TASKS[request.workload]
    passes = _passes(Library(), task)

    def step() -> None:
        for run in passes:
            run()

    return StepLoop(step, [()] * task.steps, lead_in=task.lead_in)


def _passes(library: Library, task: Task) -> list[Callable[[], None]]:
    """Make every layer's forward pass and gradients.

    Nobody needs the gradient with respect to the images, so the first layer has none.
    """
    made: list[Callable[[], None]] = []
    first = True
    for layer, size in lay.walk(task.layers, task.size):
        if isinstance(layer, lay.Conv):
            sizes = (size[2], size[0], layer.filters, layer.kernel, layer.stride, layer.padding)
            made += library.convolution(Shape(task.batch, *sizes), to_source=not first)
            first = False
        elif isinstance(layer, lay.Dense):
            inner, outer = size[0], layer.units
            made.append(library.product(task.batch, inner, outer))
            made.append(library.product(inner, task.batch, outer))
            if not first:
                made.append(library.product(task.batch, outer, inner))
            first = False
    return made
