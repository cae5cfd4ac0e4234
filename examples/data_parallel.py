"""Digits on several processes, each with a share of every batch and a copy of the variables.

::

    python data_parallel.py --folder=run                  # one process
    mpirun -n 4 python data_parallel.py --folder=run      # four, which train the same network

Each process computes the gradients of its share, and all apply the mean of all shares, so the
variables stay alike and the losses do not depend on the number of processes. The first process
alone writes checkpoints. Stop it at any moment and start the same command again: it goes on,
also with another number of processes.
"""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

import numpy as np

import headrace as hr


def network(images: hr.Tensor) -> hr.Tensor:
    """Return the logits of two dense layers."""
    hidden = hr.layers.dense(images, 64, activation=hr.nn.relu, name="hidden")
    return hr.layers.dense(hidden, 10, name="output")


def main() -> None:
    """Train, and let the first process tell how it went."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", help="where checkpoints are; none are written without it")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch", type=int, default=96, help="images in a batch of all processes")
    parser.add_argument("--compression", choices=["bfloat16", "float16"])
    parser.add_argument("--json", action="store_true", help="print the losses as JSON")
    options = parser.parse_args()
    rank, size = hr.dist.rank(), hr.dist.size()
    if options.batch % size:
        parser.error(f"--batch must be a multiple of the {size} processes, got {options.batch}")

    load: Any = hr.train.datasets.load_digits
    if os.environ.get("HEADRACE_DATA"):
        load = hr.train.datasets.load_mnist
    data = load(one_hot=True)

    hr.set_random_seed(1)
    images = hr.placeholder(hr.float32, [None, data.train.images.shape[1]], name="images")
    labels = hr.placeholder(hr.float32, [None, 10], name="labels")
    logits = network(images)
    losses = hr.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits)
    loss = hr.reduce_mean(losses)
    step = hr.train.get_or_create_global_step()
    optimizer = hr.dist.DistributedOptimizer(
        hr.train.MomentumOptimizer(0.1, 0.9), compression=options.compression
    )
    train = optimizer.minimize(loss, global_step=step)
    loss_of_all = hr.dist.all_reduce(loss, "mean")
    right = hr.equal(hr.argmax(logits, 1), hr.argmax(labels, 1))
    accuracy = hr.reduce_mean(hr.cast(right, hr.float32))

    # What has no collectives may be run by one process alone.
    final = hr.train.FinalOpsHook(accuracy, {images: data.test.images, labels: data.test.labels})
    hooks = [
        # First: the others learn from it at which step the first process goes on.
        hr.dist.BroadcastGlobalVariablesHook(0),
        hr.train.StopAtStepHook(last_step=options.steps),
        *([final] if rank == 0 else []),
    ]
    told: list[float] = []
    rows = options.batch // size
    with hr.train.MonitoredTrainingSession(
        checkpoint_dir=options.folder if rank == 0 else None,
        hooks=hooks,
        save_checkpoint_steps=100,
        save_summaries_steps=None,
        save_summaries_secs=None,
        log_step_count_steps=None,
    ) as session:
        while not session.should_stop():
            # All processes draw the same batches, and each takes its rows.
            batch = data.train.next_batch(options.batch)
            share = [part[rank * rows : (rank + 1) * rows] for part in batch]
            feeds = dict(zip([images, labels], share, strict=True))
            told.append(float(session.run([loss_of_all, train], feeds)[0]))
    if rank == 0:
        value = float(final.final_ops_values)
        if options.json:
            print(json.dumps({"losses": told, "accuracy": value}))
        else:
            loss_at_end = np.mean(told[-20:])
            print(
                f"{len(told)} steps on {size} processes: loss {loss_at_end:.4f}, "
                f"accuracy {value:.4f}"
            )


if __name__ == "__main__":
    main()
