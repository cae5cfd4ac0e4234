"""A training application of concurrent steps: read, shuffle, preprocess, train, save.

This is figure 1 of the paper that describes TensorFlow. Each part is a step of its own, which a
thread runs again and again, and queues between them let each go at its own speed. All steps share
one graph, and one set of variables: ::

    files -> [read] -> shuffled lines -> [preprocess] -> examples -> [train] -> variables
                                                                     [save]  <-

The model predicts the next character of a text from those before it. Set ``HEADRACE_DATA`` to a
folder that has a text in ``tinyshakespeare/input.txt``, or name text files.

References:
    M. Abadi et al., TensorFlow: a system for large-scale machine learning, OSDI 2016, figure 1.
    Y. Bengio, R. Ducharme, P. Vincent, C. Jauvin, A neural probabilistic language model, JMLR 3,
    2003: the model, of words there.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import headrace as hr


def shuffled_lines(files: list[str], epochs: int | None) -> Any:
    """Return a queue of lines in random order, which one thread for two files fills."""
    names = hr.train.string_input_producer(files, num_epochs=epochs)
    lines = hr.RandomShuffleQueue(4000, 1000, hr.string, [[]])
    reads = []
    for _ in range(2):
        # A reader reads one file after the other; two of them read two files at once.
        _, some = hr.TextLineReader().read_up_to(names, 64)
        reads.append(lines.enqueue_many(some))
    hr.train.add_queue_runner(hr.train.QueueRunner(lines, reads))
    return lines


def pieces(lines: hr.Tensor, length: int) -> tuple[hr.Tensor, hr.Tensor]:
    """Cut a piece out of each line, somewhere.

    Args:
        lines: [n], string.
        length: How many bytes a piece has.

    Returns:
        [n, length] int32, the pieces; and [n] bool, whether the line was long enough for one.
    """
    lines = hr.strings.join([lines, "\n"])
    sizes = hr.strings.length(lines)
    room = hr.maximum(sizes - length + 1, 1)
    chosen = hr.random_uniform(hr.shape(room)) * hr.cast(room, hr.float32)
    starts = hr.cast(hr.floor(chosen), hr.int32)
    padded = hr.strings.join([lines, " " * length])
    cut = hr.strings.substr(padded, starts, hr.fill(hr.shape(starts), length))
    characters = hr.reshape(hr.cast(hr.decode_raw(cut, hr.uint8), hr.int32), [-1, length])
    return characters, hr.greater_equal(sizes, length)


def model(examples: hr.Tensor, units: int = 128) -> hr.Tensor:
    """Return the mean loss, in nats per character, of predicting the last byte of each example."""
    before, label = examples[:, :-1], examples[:, -1]
    context = before.shape[1]
    vectors = hr.get_variable("vectors", [256, 16])
    hidden = hr.reshape(hr.nn.embedding_lookup(vectors, before), [-1, context * 16])
    for name, inputs, outputs in (("hidden", context * 16, units), ("logits", units, 256)):
        weights = hr.get_variable(f"{name}/weights", [inputs, outputs])
        bias = hr.get_variable(f"{name}/bias", [outputs], initializer=hr.zeros_initializer())
        hidden = hr.matmul(hidden, weights) + bias
        if name == "hidden":
            hidden = hr.nn.relu(hidden)
    losses = hr.nn.sparse_softmax_cross_entropy_with_logits(labels=label, logits=hidden)
    return hr.reduce_mean(losses)


def main() -> None:
    """Train until the epochs are over, and save from time to time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", help="text files")
    parser.add_argument("--epochs", type=int, default=5, help="times that each line is used")
    parser.add_argument("--context", type=int, default=8, help="characters that are looked at")
    parser.add_argument("--batch", type=int, default=64, help="examples to a step")
    parser.add_argument("--checkpoints", default="checkpoints", help="folder to keep them in")
    parser.add_argument("--save-every", type=float, default=2.0, help="seconds between checkpoints")
    options = parser.parse_args()
    files = options.files
    if not files:
        root = os.environ.get("HEADRACE_DATA")
        if not root:
            parser.error("name text files, or set HEADRACE_DATA")
        files = [str(Path(root, "tinyshakespeare", "input.txt"))]

    hr.set_random_seed(1)
    with hr.name_scope("read"):
        lines = shuffled_lines(files, options.epochs)
    with hr.name_scope("preprocess"):
        cut, long_enough = pieces(lines.dequeue_up_to(64), options.context + 1)
        examples = hr.train.maybe_batch(
            [cut],
            long_enough,
            options.batch,
            num_threads=2,
            capacity=16 * options.batch,
            enqueue_many=True,
        )
    with hr.name_scope("train"):
        global_step = hr.train.get_or_create_global_step()
        loss = model(examples)
        train_step = hr.train.AdamOptimizer(0.002).minimize(loss, global_step)
    saver = hr.train.Saver(max_to_keep=2)
    path = f"{options.checkpoints}/characters"

    with hr.Session() as session:
        session.run(hr.local_variables_initializer())
        latest = hr.train.latest_checkpoint(options.checkpoints)
        if latest is None:
            session.run(hr.global_variables_initializer())
        else:
            print(f"going on from {latest}")
            saver.restore(session, latest)

        coordinator = hr.train.Coordinator()
        threads = hr.train.start_queue_runners(session, coordinator)
        threads.append(
            hr.train.LooperThread.loop(
                coordinator,
                options.save_every,
                lambda: saver.save(session, path, global_step=global_step),
            )
        )
        mean, step = 0.0, 0
        with coordinator.stop_on_exception():
            while not coordinator.should_stop():
                # Raises OutOfRangeError when the epochs are over, which ends the loop.
                found, step, _ = session.run([loss, global_step, train_step])
                mean = found if not mean else 0.98 * mean + 0.02 * found
                if step % 500 == 0:
                    print(f"step {step}, loss {mean:.3f} nats per character")
        coordinator.join(threads)
        step = session.run(global_step)
        saved = saver.save(session, path, global_step)
        print(f"step {step}, loss {mean:.3f} nats per character; saved to {saved}")


if __name__ == "__main__":
    main()
