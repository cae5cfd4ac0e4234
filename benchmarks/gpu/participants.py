"""The networks on a GPU, by each library: what runs a step on a batch that lies there already.

All participants compute float32 with the same precision of products ("tf32" or "highest"), keep
parameters and batch on the GPU, and hand back the loss of a step where it is asked for.
"""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.networks.tasks import Task


@dataclass(frozen=True)
class Trainer:
    """A network that is being trained.

    Attributes:
        step: Starts one step.
        loss: Runs one step and returns the loss before it.
        wait: Waits for all steps that were started.
    """

    step: Callable[[], object]
    loss: Callable[[], float]
    wait: Callable[[], object]


def headrace(task: Task, precision: str) -> Trainer:
    """Train by Headrace."""
    import headrace as hr
    from benchmarks.networks import dataflow

    images, labels = task.feeds()[0]
    graph = hr.Graph()
    with graph.as_default(), hr.device("/device:cuda:0"):
        batch = hr.Variable(images, trainable=False), hr.Variable(labels, trainable=False)
        program = dataflow.build(hr, task, batch)
    session = hr.Session(graph=graph, config=hr.Config(precision=precision))
    with graph.as_default():
        session.run(hr.global_variables_initializer())
        dataflow.load(session, program, task)
        both = session.make_callable([program.loss, program.train])
        step = session.make_callable(program.train)
    return Trainer(step, lambda: float(both()[0]), lambda: session.run(program.variables[-1]))


def torch_eager(task: Task, precision: str) -> Trainer:
    """Train by PyTorch, operation by operation."""
    import torch

    from benchmarks.networks.torch import load, modules

    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.benchmark = True
    images, labels = task.feeds()[0]
    x, y = torch.from_numpy(images).cuda(), torch.from_numpy(labels).cuda()
    model = load(torch.nn.Sequential(*modules(task.layers, task.size)), task).cuda()
    if len(task.size) == 3:
        model = model.to(memory_format=torch.channels_last)
        x = x.permute(0, 3, 1, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=task.rate, fused=True)

    def step() -> Any:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Trainer(step, lambda: float(step()), torch.cuda.synchronize)


def jax_jit(task: Task, precision: str) -> Trainer:
    """Train by JAX, the whole step compiled."""
    import jax
    import jax.numpy as jnp

    from benchmarks.networks.jax import forward

    jax.config.update("jax_default_matmul_precision", precision.replace("tf32", "tensorfloat32"))
    images, labels = map(jnp.array, task.feeds()[0])
    labels = labels.astype(np.int32)

    def cross_entropy(parameters: Any, images: Any, labels: Any) -> Any:
        chances = jax.nn.log_softmax(forward(task.layers, images, iter(parameters)))
        return -jnp.mean(jnp.take_along_axis(chances, labels[:, None], axis=1))

    def updated(parameters: Any, images: Any, labels: Any) -> Any:
        value, gradients = jax.value_and_grad(cross_entropy)(parameters, images, labels)
        pairs = zip(parameters, gradients, strict=True)
        return value, [p - task.rate * g for p, g in pairs]

    compiled = jax.jit(updated, donate_argnums=0)
    state: list[Any] = [None, [jnp.array(value) for value in task.first_values()]]

    def step() -> None:
        state[0], state[1] = compiled(state[1], images, labels)

    def loss() -> float:
        step()
        return float(state[0])

    return Trainer(step, loss, lambda: jax.block_until_ready(state))


PARTICIPANTS: dict[str, Callable[[Task, str], Trainer]] = {
    "Headrace": headrace,
    "PyTorch, eager": torch_eager,
    "JAX": jax_jit,
}
