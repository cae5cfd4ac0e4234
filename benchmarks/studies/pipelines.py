"""Elements per second of an input pipeline, beside those of TensorFlow's and PyTorch's.

It prepares images of the size of MNIST's: shuffled, decoded to floats, normalized, in the second
workload shifted by chance, their labels one-hot, in batches of 128 that are fetched ahead. Each
participant runs in a process of its own, in turns, and counts whole epochs after a first one; the
best of its rounds counts.

    python -m benchmarks.studies.pipelines NAME ELEMENTS [--shift]

measures one participant in this process.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.controller import Progress, RunSettings
from benchmarks.peers import HEADRACE, NOT_INSTALLED, PEERS
from benchmarks.process import ROOT, environment
from benchmarks.studies import Result
from benchmarks.table import row

BATCH = 128
BUFFER = 5000
MEAN, SCALE = 0.1307, 0.3081
WORKLOADS = ("decode", "decode and shift")
PEER_OF = {"tf.data": "tensorflow", "DataLoader": "torch", "DataLoader, 2 workers": "torch"}
ELEMENTS = 30_000
_TIMEOUT_S = 600


def data(elements: int) -> tuple[Any, Any]:
    """Return images [n, 784], uint8, and labels [n]."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (elements, 784), dtype=np.uint8)
    return images, rng.integers(0, 10, elements)


def headrace(elements: int, shift: bool) -> Iterator[int]:
    """Yield the size of each batch, epoch after epoch."""
    import headrace as hr

    def prepare(image: Any, label: Any) -> Any:
        x = (hr.reshape(hr.cast(image, hr.float32) / 255.0, [28, 28, 1]) - MEAN) / SCALE
        if shift:
            x = hr.random_crop(hr.pad(x, [[2, 2], [2, 2], [0, 0]]), [28, 28, 1])
        return x, hr.one_hot(label, 10)

    dataset = hr.data.Dataset.from_tensor_slices(data(elements)).shuffle(BUFFER).repeat()
    dataset = dataset.map(prepare, num_parallel_calls=2).batch(BATCH).prefetch(2)
    element = dataset.make_one_shot_iterator().get_next()
    with hr.Session() as session:
        step = session.make_callable(element)
        while True:
            yield len(step()[1])


def tensorflow(elements: int, shift: bool) -> Iterator[int]:
    """Yield the size of each batch, epoch after epoch."""
    import tensorflow as tf

    def prepare(image: Any, label: Any) -> Any:
        x = (tf.reshape(tf.cast(image, tf.float32) / 255.0, [28, 28, 1]) - MEAN) / SCALE
        if shift:
            x = tf.image.random_crop(tf.pad(x, [[2, 2], [2, 2], [0, 0]]), [28, 28, 1])
        return x, tf.one_hot(label, 10)

    dataset = tf.data.Dataset.from_tensor_slices(data(elements)).shuffle(BUFFER).repeat()
    dataset = dataset.map(prepare, num_parallel_calls=tf.data.AUTOTUNE).batch(BATCH)
    for _, label in dataset.prefetch(2):
        yield len(label)


def loader(elements: int, shift: bool, workers: int) -> Iterator[int]:
    """Yield the size of each batch, epoch after epoch."""
    import torch
    from torch.nn import functional
    from torch.utils.data import DataLoader

    images, labels = map(torch.from_numpy, data(elements))

    class Prepared(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return elements

        def __getitem__(self, index: int) -> Any:
            x = ((images[index].float() / 255.0).reshape(1, 28, 28) - MEAN) / SCALE
            if shift:
                x = functional.pad(x, (2, 2, 2, 2))
                top, left = torch.randint(0, 5, (2,)).tolist()
                x = x[:, top : top + 28, left : left + 28]
            return x, functional.one_hot(labels[index], 10).float()

    torch.set_num_threads(1)
    batches: Any = DataLoader(Prepared(), BATCH, shuffle=True, num_workers=workers)
    while True:
        for _, label in batches:
            yield len(label)


PARTICIPANTS: dict[str, Callable[[int, bool], Iterator[int]]] = {
    "headrace": headrace,
    "tf.data": tensorflow,
    "DataLoader": lambda elements, shift: loader(elements, shift, 0),
    "DataLoader, 2 workers": lambda elements, shift: loader(elements, shift, 2),
}


def measure(name: str, elements: int, shift: bool) -> float:
    """Return elements per second in the second epoch."""
    sizes = PARTICIPANTS[name](elements, shift)
    seen = 0
    while seen < elements:
        seen += next(sizes)
    began, seen = time.perf_counter(), 0
    while seen < elements:
        seen += next(sizes)
    return seen / (time.perf_counter() - began)


def run(settings: RunSettings, progress: Progress) -> Result:
    """Measure all participants with both workloads, round by round."""
    lines = [
        row(["elements per second", *PARTICIPANTS]),
        row(["---", *["---:"] * len(PARTICIPANTS)]),
    ]
    behind = False
    for workload in WORKLOADS:
        best: dict[str, float] = {}
        for number in range(settings.rounds):
            for name in PARTICIPANTS:
                if not PEERS[PEER_OF.get(name, HEADRACE)].installed():
                    continue
                progress(f"pipelines: {workload}, {name}, round {number + 1} of {settings.rounds}")
                found = _in_process(name, workload != WORKLOADS[0], settings.threads)
                best[name] = max(found, best.get(name, 0.0))
        cells = [f"{best[name]:.0f}" if name in best else NOT_INSTALLED for name in PARTICIPANTS]
        lines.append(row([workload, *cells]))
        behind |= best["headrace"] < max(best.values())
    note = f"The best of {settings.rounds} rounds of {ELEMENTS} elements."
    return Result([note, "", *lines], not behind)


def _in_process(name: str, shift: bool, threads: int) -> float:
    words = [sys.executable, "-m", "benchmarks.studies.pipelines", name, str(ELEMENTS)]
    done = subprocess.run(
        [*words, *(["--shift"] if shift else [])],
        capture_output=True,
        check=True,
        cwd=ROOT,
        encoding="utf-8",
        env=environment(threads),
        timeout=_TIMEOUT_S,
    )
    return float(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Measure one participant."""
    parser = argparse.ArgumentParser(description="Measure an input pipeline.")
    parser.add_argument("name", choices=PARTICIPANTS)
    parser.add_argument("elements", type=int)
    parser.add_argument("--shift", action="store_true")
    options = parser.parse_args()
    print(json.dumps(measure(options.name, options.elements, options.shift)))


if __name__ == "__main__":
    main()
