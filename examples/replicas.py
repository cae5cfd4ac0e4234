"""One model, trained by several workers in one of four ways.

    python -m headrace run -n 4 --ps 1 examples/replicas.py --mode sync
    python -m headrace run -n 5 --ps 1 examples/replicas.py --mode backup --slow-worker 3
    python -m headrace run -n 3 examples/replicas.py --mode allreduce
    python examples/replicas.py                     # one process plays all tasks

async: each worker applies its own gradients when it has them; with --consistency bounded:2 none
    that is more than two updates old, with --consistency sequential none that is old at all.
sync: a step applies the mean of the gradients of all workers.
backup: a step applies the mean of the first gradients, and leaves out --backup workers.
allreduce: as sync, but each worker has the variables, and there is no parameter server.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any, NamedTuple

import numpy as np

import headrace as hr

MODES = ("async", "sync", "backup", "allreduce")


class Place(NamedTuple):
    """Where this worker is.

    Attributes:
        target: What its session is opened with.
        index: Which of the workers it is.
        workers: How many there are.
        ps: How many parameter servers.
    """

    target: str
    index: int
    workers: int
    ps: int


class Model(NamedTuple):
    """What the training loop needs of the graph."""

    images: hr.Tensor
    labels: hr.Tensor
    loss: hr.Tensor
    accuracy: hr.Tensor
    steps: hr.Variable
    train: Any
    counters: Any
    staleness: Any
    hooks: list[Any]


def build(place: Place, mode: str, backup: int, hidden: int, learning_rate: float) -> Model:
    """Build this worker's replica of a network with one hidden layer.

    Args:
        place: Where this worker is.
        mode: One of ``MODES``.
        backup: How many workers a step leaves out, in the mode ``backup``.
        hidden: Number of hidden units.
        learning_rate: Step size of gradient descent.

    Returns:
        Its placeholders and what to run.
    """
    setter = hr.train.replica_device_setter(
        place.ps, worker_device=f"/job:worker/task:{place.index}"
    )
    with hr.device(setter):
        images = hr.placeholder(hr.float32, [None, 64], name="images")
        labels = hr.placeholder(hr.float32, [None, 10], name="labels")
        steps = hr.train.get_or_create_global_step()
        staleness = hr.train.StalenessRecorder() if mode == "async" else None
        first = hr.layers.dense(images, hidden, hr.nn.relu, name="first")
        logits = hr.layers.dense(first, 10, name="last")
        each = hr.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        loss = hr.reduce_mean(each)
        right = hr.equal(hr.argmax(logits, 1), hr.argmax(labels, 1))
        accuracy = hr.reduce_mean(hr.cast(right, hr.float32))
        optimizer: Any = hr.train.GradientDescentOptimizer(learning_rate)
        hooks: list[Any] = []
        if mode == "allreduce":
            optimizer = hr.dist.DistributedOptimizer(optimizer)
            hooks.append(hr.dist.BroadcastGlobalVariablesHook(0))
        elif mode != "async":
            wanted = place.workers - (backup if mode == "backup" else 0)
            optimizer = hr.train.SyncReplicasOptimizer(optimizer, max(wanted, 1), place.workers)
            hooks.append(optimizer.make_session_run_hook(place.index == 0, num_tokens=0))
        train = optimizer.minimize(loss, steps)
        counters = optimizer.counters() if mode in ("sync", "backup") else None
        if staleness is not None:
            train = staleness.record(train)
    return Model(images, labels, loss, accuracy, steps, train, counters, staleness, hooks)


def train(place: Place, model: Model, args: argparse.Namespace) -> dict[str, Any]:
    """Train until there are enough steps, and return what this worker saw.

    Args:
        place: Where this worker is.
        model: The replica.
        args: The arguments of the program.

    Returns:
        The seconds and losses of this worker's steps, the number of steps of all, the accuracy on
        test images, and how many gradients were applied and dropped.
    """
    digits = hr.train.datasets.load_digits(seed=0)
    batches = hr.train.datasets.Dataset(digits.train.images, digits.train.labels, seed=place.index)
    final: dict[str, Any] = {"accuracy": model.accuracy, "steps": model.steps.value()}
    if model.counters is not None:
        final |= {"applied": model.counters.applied, "dropped": model.counters.dropped}
    if model.staleness is not None:
        final["staleness"] = model.staleness.counts.value()
    test = {model.images: digits.test.images, model.labels: digits.test.labels}
    ending = hr.train.FinalOpsHook(final, test)
    # The model's hooks are the last: the chief ends when the other workers have ended.
    hooks = [hr.train.StopAtStepHook(last_step=args.steps), ending, *model.hooks]
    wait = args.delay_ms / 1000 if place.index == args.slow_worker else 0.0
    # By all-reduce each worker has variables of its own to initialize.
    chief = place.index == 0 or args.mode == "allreduce"
    seen: list[tuple[float, float]] = []
    config = hr.Config(consistency=args.consistency)
    with hr.train.MonitoredTrainingSession(
        place.target, chief, hooks=hooks, save_checkpoint_steps=None, config=config
    ) as session:
        begin = time.perf_counter()
        while not session.should_stop():
            time.sleep(wait)
            x, y = batches.next_batch(args.batch)
            loss, _ = session.run([model.loss, model.train], {model.images: x, model.labels: y})
            seen.append((time.perf_counter() - begin, float(loss)))
    values = {name: value.tolist() for name, value in ending.final_ops_values.items()}
    return {"mode": args.mode, "workers": place.workers, "seen": seen, **values}


def main() -> None:
    """Train on the workers, while the parameter server serves them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", choices=MODES, default="sync")
    parser.add_argument("--consistency", default="relaxed", help="bounded:K or sequential")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=50, help="images in a worker's batch")
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--learning-rate", type=float, default=0.3)
    parser.add_argument("--backup", type=int, default=1, help="workers that a step leaves out")
    parser.add_argument("--slow-worker", type=int, default=-1, help="which worker is slow")
    parser.add_argument("--delay-ms", type=float, default=50.0, help="by how much")
    parser.add_argument("--json", action="store_true", help="print what the chief saw as JSON")
    args = parser.parse_args()
    if args.mode == "allreduce":
        run(Place("", hr.dist.rank(), hr.dist.size(), 0), args)
        return
    with hr.dist.Cluster(ps=1) as cluster:
        if cluster.job_name == "ps":
            cluster.serve()
        else:
            run(Place(cluster.target, cluster.task_index, cluster.num_workers, 1), args)


def run(place: Place, args: argparse.Namespace) -> None:
    """Train; the first worker tells what it saw."""
    model = build(place, args.mode, args.backup, args.hidden, args.learning_rate)
    result = train(place, model, args)
    if place.index:
        return
    if args.json:
        print(json.dumps(result))
        return
    seconds, losses = zip(*result["seen"], strict=True)
    print(
        f"{args.mode}: {result['steps']} steps of {result['workers']} workers in "
        f"{seconds[-1]:.2f} s, loss {np.mean(losses[-20:]):.3f}, accuracy {result['accuracy']:.2f}"
    )
    if "staleness" in result:
        print(hr.train.StalenessSummary.of(np.array(result["staleness"])))
    if "applied" in result:
        print(f"{result['applied']} gradients applied, {result['dropped']} dropped")


if __name__ == "__main__":
    main()
