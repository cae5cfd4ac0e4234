"""A convolutional net that reads handwritten digits, with checkpoints, stopped and resumed.

Run it twice: the second run goes on from where the first one ended.
"""

from __future__ import annotations

import argparse

from models import classifier

import headrace as hr

arguments = argparse.ArgumentParser(description=__doc__)
arguments.add_argument("--steps", type=int, default=500, help="steps to train (default 500)")
arguments.add_argument("--checkpoints", default="checkpoints", help="folder to keep them in")
options = arguments.parse_args()

digits = hr.train.datasets.load_digits()
net = classifier("conv net", pixels=64, classes=10)
global_step = hr.train.get_or_create_global_step()
train_step = hr.train.AdamOptimizer(0.002).minimize(net.loss, global_step)
saver = hr.train.Saver(max_to_keep=3)

with hr.Session() as session:
    latest = hr.train.latest_checkpoint(options.checkpoints)
    if latest is None:
        session.run(hr.global_variables_initializer())
    else:
        print(f"going on from {latest}")
        saver.restore(session, latest)

    with hr.train.Progress(options.steps, "conv net") as progress:
        for _ in range(options.steps):
            images, labels = digits.train.next_batch(50)
            feeds = {net.images: images, net.labels: labels}
            _, loss = session.run([train_step, net.loss], feeds)
            progress.update(loss=loss)

    path = saver.save(session, f"{options.checkpoints}/digits", global_step)
    test = {net.images: digits.test.images, net.labels: digits.test.labels}
    print(f"test accuracy {session.run(net.accuracy, test):.3f}, saved to {path}")
