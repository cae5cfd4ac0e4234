"""The model as a TensorFlow 1.15 program, which Headrace and TensorFlow both run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.workloads.lstm import data

# The variant whose time steps are the turns of a loop; in all others they are built one by one.
LOOP = "while_loop"


@dataclass(frozen=True)
class Program:
    """A graph of one training step.

    Attributes:
        feeds: placeholders of the words and of those to be guessed.
        variables: what is trained.
        train: the operation that runs one step.
    """

    feeds: tuple[Any, Any]
    variables: data.Parameters
    train: Any


def build(api: Any, variant: str) -> Program:
    """Build the graph with a library: ``headrace`` or ``tensorflow.compat.v1``."""
    words = api.placeholder(api.int32, [data.BATCH, data.STEPS])
    targets = api.placeholder(api.int32, [data.BATCH, data.STEPS])
    variables = _variables(api)
    inputs = api.nn.embedding_lookup(variables.embedding, words)
    unroll = _looped if variant == LOOP else _unrolled
    outputs = api.reshape(unroll(api, inputs, variables), [-1, data.UNITS])
    logits = api.nn.bias_add(api.matmul(outputs, variables.projection), variables.projection_bias)
    # The outputs are ordered by time, then by text.
    labels = api.reshape(api.transpose(targets), [-1])
    losses = api.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    trained = variables.flat()
    gradients = api.gradients(api.reduce_mean(losses), trained)
    clipped, _ = api.clip_by_global_norm(gradients, data.MAX_NORM)
    optimizer = api.train.GradientDescentOptimizer(data.LEARNING_RATE)
    train = optimizer.apply_gradients(list(zip(clipped, trained, strict=True)))
    return Program((words, targets), variables, train)


def load(session: Any, program: Program) -> None:
    """Give the variables their first values."""
    pairs = zip(program.variables.flat(), data.parameters().flat(), strict=True)
    for variable, value in pairs:
        variable.load(value, session)


def _variables(api: Any) -> data.Parameters:
    """Make the variables, zero for now."""

    def zeros(*shape: int) -> Any:
        return api.Variable(api.zeros(list(shape)))

    return data.Parameters(
        zeros(data.VOCABULARY, data.UNITS),
        [zeros(2 * data.UNITS, 4 * data.UNITS) for _ in range(data.LAYERS)],
        [zeros(4 * data.UNITS) for _ in range(data.LAYERS)],
        zeros(data.UNITS, data.VOCABULARY),
        zeros(data.VOCABULARY),
    )


def _unrolled(api: Any, inputs: Any, variables: data.Parameters) -> Any:
    """Build all time steps; returns the outputs [STEPS, BATCH, UNITS]."""
    state = [api.zeros([data.BATCH, data.UNITS]) for _ in range(2 * data.LAYERS)]
    outputs = []
    for at in range(data.STEPS):
        state = _turn(api, inputs[:, at], state, variables)
        outputs.append(state[-2])
    return api.stack(outputs)


def _looped(api: Any, inputs: Any, variables: data.Parameters) -> Any:
    """Build one time step in a loop; returns the outputs [STEPS, BATCH, UNITS]."""
    by_time = api.TensorArray(api.float32, data.STEPS).unstack(api.transpose(inputs, [1, 0, 2]))
    state = [api.zeros([data.BATCH, data.UNITS]) for _ in range(2 * data.LAYERS)]

    def body(at: Any, outputs: Any, *state: Any) -> Any:
        x = by_time.read(at)
        x.set_shape([data.BATCH, data.UNITS])
        new = _turn(api, x, state, variables)
        return (at + 1, outputs.write(at, new[-2]), *new)

    first = (api.constant(0), api.TensorArray(api.float32, data.STEPS), *state)
    last = api.while_loop(lambda at, *_: at < data.STEPS, body, first)
    return last[1].stack()


def _turn(api: Any, x: Any, state: Any, variables: data.Parameters) -> list[Any]:
    """Build one time step of all layers.

    Args:
        api: the library.
        x: inputs [BATCH, UNITS].
        state: output and cell of each layer, one after the other.
        variables: what is trained.

    Returns:
        The new state.
    """
    new: list[Any] = []
    for layer in range(data.LAYERS):
        output, cell = state[2 * layer : 2 * layer + 2]
        joined = api.concat([x, output], 1)
        gates = api.nn.bias_add(
            api.matmul(joined, variables.kernels[layer]), variables.biases[layer]
        )
        write, candidate, keep, show = api.split(gates, 4, 1)
        kept = cell * api.sigmoid(keep + data.FORGET_BIAS)
        cell = kept + api.sigmoid(write) * api.tanh(candidate)
        x = api.tanh(cell) * api.sigmoid(show)
        new += [x, cell]
    return new
