"""A language model of lines, batched by their lengths.

An LSTM walks over whole lines of a text. In a batch all lines are padded to the longest, and what
it computes on padding is wasted; lines of about one length, which buckets bring together, waste
little. Set ``HEADRACE_DATA`` to a folder that has a text in ``tinyshakespeare/input.txt``, or name
a text file with ``--text``.

References:
    I. Sutskever, O. Vinyals, Q. V. Le, Sequence to sequence learning with neural networks,
    NIPS 2014: batches of sentences of about one length.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import headrace as hr


def batches(lines: list[str], size: int, boundaries: list[int], epochs: int) -> tuple[Any, Any]:
    """Return the lengths of the lines in a batch, and their characters.

    Args:
        lines: The lines.
        size: How many lines to a batch.
        boundaries: Where the buckets of lengths end.
        epochs: How many times each line comes.

    Returns:
        [size] int32, and [size, longest] int32, zeros behind the end of each line.
    """
    line = hr.train.string_input_producer(lines, num_epochs=epochs, capacity=256).dequeue()
    length = hr.strings.length(line)
    # Rounded up to tens: what each step computes is planned for the shapes that it meets, and
    # these should be few.
    rounded = hr.floordiv(length + 9, 10) * 10
    padded = hr.strings.substr(hr.strings.join([line, "\0" * 9]), 0, rounded)
    _, (lengths, batch) = hr.train.bucket_by_sequence_length(
        rounded,
        [length, hr.cast(hr.decode_raw(padded, hr.uint8), hr.int32)],
        size,
        boundaries,
        num_threads=2,
        shapes=[[], [None]],
        dynamic_pad=True,
    )
    return lengths, batch


class LineModel:
    """An LSTM that predicts each character of a line from those before it.

    Attributes:
        loss: [], in nats per character, padding left out.
    """

    def __init__(self, lengths: hr.Tensor, characters: hr.Tensor, units: int) -> None:
        """Build the model on a batch."""
        vectors = hr.get_variable("vectors", [256, units])
        # What comes before the first character is character 0, which is in no line.
        before = hr.pad(characters[:, :-1], [[0, 0], [1, 0]])
        outputs, _ = hr.nn.dynamic_rnn(
            hr.nn.rnn_cell.LSTMCell(units),
            hr.nn.embedding_lookup(vectors, before),
            sequence_length=lengths,
            dtype=hr.float32,
        )
        weights = hr.get_variable("weights", [units, 256])
        bias = hr.get_variable("bias", [256], initializer=hr.zeros_initializer())
        logits = hr.matmul(hr.reshape(outputs, [-1, units]), weights) + bias
        losses = hr.nn.sparse_softmax_cross_entropy_with_logits(
            labels=hr.reshape(characters, [-1]), logits=logits
        )
        mask = hr.sequence_mask(lengths, hr.shape(characters)[1], dtype=hr.float32)
        mask = hr.reshape(mask, [-1])
        self.loss = hr.reduce_sum(losses * mask) / hr.reduce_sum(mask)


def main() -> None:
    """Train the model, and print its loss and how much of the batches was padding."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", help="a text file")
    parser.add_argument("--epochs", type=int, default=1, help="times that each line is used")
    parser.add_argument("--units", type=int, default=96)
    parser.add_argument("--batch", type=int, default=64, help="lines to a batch")
    parser.add_argument("--boundaries", type=int, nargs="*", default=[20, 40, 50])
    options = parser.parse_args()

    hr.set_random_seed(1)
    text = hr.train.datasets.load_text(options.text)
    whole = "".join(text.characters[i] for i in text.numbers)
    lines = [line for line in whole.splitlines() if line]
    lengths, characters = batches(lines, options.batch, options.boundaries, options.epochs)
    model = LineModel(lengths, characters, options.units)
    train_step = hr.train.AdamOptimizer(0.005).minimize(model.loss)
    size = hr.size(characters)

    with hr.Session() as session:
        session.run([hr.global_variables_initializer(), hr.local_variables_initializer()])
        coordinator = hr.train.Coordinator()
        threads = hr.train.start_queue_runners(session, coordinator)
        step, mean, used, all_places = 0, 0.0, 0, 0
        with coordinator.stop_on_exception():
            while not coordinator.should_stop():
                loss, some, places, _ = session.run([model.loss, lengths, size, train_step])
                step += 1
                mean += (float(loss) - mean) / min(step, 50)
                used += int(np.sum(some))
                all_places += int(places)
                if step % 100 == 0:
                    print(f"step {step}, loss {mean:.3f} nats per character")
        coordinator.join(threads)
        padding = 100 * (1 - used / all_places)
        print(
            f"step {step}, loss {mean:.3f} nats per character; {padding:.0f} % of the batches was "
            "padding"
        )


if __name__ == "__main__":
    main()
