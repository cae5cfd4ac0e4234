"""A language model of characters: an LSTM that walks over the text in a loop of the graph.

Set ``HEADRACE_DATA`` to a folder that has a text in ``tinyshakespeare/input.txt``, or name a text
file with ``--text``.

References:
    S. Hochreiter, J. Schmidhuber, Long short-term memory, Neural Computation 9, 1997.
"""

from __future__ import annotations

import argparse
from typing import Any

import headrace as hr


class CharacterModel:
    """An LSTM over characters, and the mean cross-entropy of predicting the next one in nats.

    Attributes:
        inputs: [batch, length] int32, to be fed.
        targets: [batch, length] int32, the character after each one, to be fed.
        loss: [], in nats per character.
    """

    def __init__(self, characters: int, units: int, length: int, *, unrolled: bool = False) -> None:
        """Build the model.

        Args:
            characters: How many different characters there are.
            units: How many units the LSTM has.
            length: How many characters to a piece.
            unrolled: Repeat the cell in the graph, in place of a loop.
        """
        self.units = units
        self.inputs = hr.placeholder(hr.int32, [None, length])
        self.targets = hr.placeholder(hr.int32, [None, length])
        scale = units**-0.5
        self.embedding = hr.Variable(hr.random_uniform([characters, units], -scale, scale))
        self.kernel = hr.Variable(hr.random_uniform([2 * units, 4 * units], -scale, scale))
        # A forget gate that starts open lets gradients through from the first step on.
        self.bias = hr.Variable(
            hr.concat([hr.zeros([2 * units]), hr.ones([units]), hr.zeros([units])], 0)
        )
        self.projection = hr.Variable(hr.random_uniform([units, characters], -scale, scale))

        # [length, batch, units]: the loop takes one row after the other.
        embedded = hr.gather(self.embedding, hr.transpose(self.inputs))
        start = hr.zeros(hr.stack([hr.shape(self.inputs)[0], units]))
        run = self.unrolled if unrolled else self.looped
        outputs = hr.reshape(run(embedded, start, length), [-1, units])
        logits = hr.matmul(outputs, self.projection)
        labels = hr.reshape(hr.transpose(self.targets), [-1])
        losses = hr.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        self.loss = hr.reduce_mean(losses)

    def cell(self, x: Any, cell: Any, output: Any) -> tuple[Any, Any]:
        """Return the next cell state and output, each [batch, units]."""
        gates = hr.matmul(hr.concat([x, output], 1), self.kernel) + self.bias
        input_gate, update, forget_gate, output_gate = hr.split(gates, 4, axis=1)
        cell = hr.sigmoid(forget_gate) * cell + hr.sigmoid(input_gate) * hr.tanh(update)
        return cell, hr.sigmoid(output_gate) * hr.tanh(cell)

    def looped(self, embedded: Any, start: Any, length: int) -> Any:
        """Return all outputs, [length, batch, units], of one loop in the graph."""
        rows = hr.TensorArray(hr.float32, length).unstack(embedded)
        outputs = hr.TensorArray(hr.float32, length, element_shape=[None, self.units])

        def step(i: Any, cell: Any, output: Any, outputs: Any) -> Any:
            cell, output = self.cell(rows.read(i), cell, output)
            return i + 1, cell, output, outputs.write(i, output)

        found = hr.while_loop(lambda i, *_: i < length, step, (0, start, start, outputs))
        return found[3].stack()

    def unrolled(self, embedded: Any, start: Any, length: int) -> Any:
        """Return all outputs, [length, batch, units], of a graph in which the cell is repeated."""
        cell = output = start
        outputs = []
        for i in range(length):
            cell, output = self.cell(embedded[i], cell, output)
            outputs.append(output)
        return hr.stack(outputs)


def main() -> None:
    """Train the model and print its loss."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", help="a text file")
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--units", type=int, default=128)
    parser.add_argument("--length", type=int, default=32, help="characters to a piece")
    parser.add_argument("--batch", type=int, default=32, help="pieces to a step")
    options = parser.parse_args()

    hr.set_random_seed(1)
    text = hr.train.datasets.load_text(options.text)
    model = CharacterModel(len(text.characters), options.units, options.length)
    train_step = hr.train.AdamOptimizer(0.005).minimize(model.loss)
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        mean = 0.0
        for step, (inputs, targets) in enumerate(text.batches(options.batch, options.length), 1):
            feeds = {model.inputs: inputs, model.targets: targets}
            loss, _ = session.run([model.loss, train_step], feeds)
            # A running mean over about fifty steps, without the bias of its start.
            mean += (float(loss) - mean) / min(step, 50)
            if step % 100 == 0 or step == options.steps:
                print(f"step {step}, loss {mean:.3f} nats per character")
            if step == options.steps:
                break


if __name__ == "__main__":
    main()
