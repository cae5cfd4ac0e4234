"""Digits under supervision: summaries, checkpoints, early stopping, and going on after an end.

::

    python mnist_monitored.py --folder=run
    tensorboard --logdir=run

Stop it at any moment, with Ctrl-C or kill, and start the same command again: it goes on.
With MNIST where ``HEADRACE_DATA`` names a folder that has it, else with the digits that come with
Headrace.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

import headrace as hr


def network(images: hr.Tensor, labels: hr.Tensor) -> tuple[hr.Tensor, hr.Tensor]:
    """Return the loss and the accuracy of two dense layers, whose variables are shared by name."""
    with hr.variable_scope("network", reuse=hr.AUTO_REUSE):
        hidden = hr.layers.dense(images, 64, activation=hr.nn.relu, name="hidden")
        logits = hr.layers.dense(hidden, 10, name="output")
    losses = hr.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits)
    right = hr.equal(hr.argmax(logits, 1), hr.argmax(labels, 1))
    return hr.reduce_mean(losses), hr.reduce_mean(hr.cast(right, hr.float32))


def main() -> None:
    """Train until the validation loss gets no better."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", default="run")
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--patience", type=int, default=5)
    options = parser.parse_args()

    load: Any = hr.train.datasets.load_digits
    if os.environ.get("HEADRACE_DATA"):
        load = hr.train.datasets.load_mnist
    data = load(one_hot=True)

    hr.set_random_seed(1)
    # A fifth is kept back: the network is not trained on what tells when to stop.
    count = len(data.train.images) // 5
    kept_back = data.train.images[:count], data.train.labels[:count]
    batches = (
        hr.data.Dataset.from_tensor_slices((data.train.images[count:], data.train.labels[count:]))
        .shuffle(1000)
        .repeat()
        .batch(100)
        .prefetch(2)
    )
    images, labels = batches.make_one_shot_iterator().get_next()
    with hr.name_scope("training"):
        loss, accuracy = network(images, labels)
    with hr.name_scope("validation"):
        validation_loss, validation_accuracy = network(*map(hr.constant, kept_back))
    hr.summary.scalar("loss", loss)
    hr.summary.scalar("accuracy", accuracy)
    told = hr.summary.scalar("validation/loss", validation_loss, collections=[])
    step = hr.train.get_or_create_global_step()
    train = hr.train.AdamOptimizer(0.003).minimize(loss, global_step=step)

    def validate(session: hr.Session) -> float:
        # In a step of its own: beside training it would see weights from before or after an update.
        value, summary, at = session.run([validation_loss, told, step])
        hr.summary.FileWriterCache.get(options.folder).add_summary(summary, int(at))
        return float(value)

    early = hr.train.EarlyStoppingHook(validate, options.patience, every_n_steps=50)
    final = hr.train.FinalOpsHook([step, validation_accuracy])
    hooks = [
        hr.train.StopAtStepHook(last_step=options.steps),
        hr.train.NanTensorHook(loss),
        hr.train.ProgressHook(options.steps, {"loss": loss, "accuracy": accuracy}),
        early,
        final,
    ]
    with hr.train.MonitoredTrainingSession(
        checkpoint_dir=options.folder,
        hooks=hooks,
        save_checkpoint_steps=100,
        save_summaries_steps=20,
    ) as session:
        while not session.should_stop():
            session.run(train)
    last, value = final.final_ops_values
    print(
        f"validation accuracy {value:.3f} after {last} steps, best loss at step {early.best_step}"
    )


if __name__ == "__main__":
    main()
