"""A training program that says in which phase it is, for a signal to find it there.

``python program.py FOLDER`` appends a line to ``FOLDER/phases`` as each phase begins. It saves into
``FOLDER/model`` only what it then writes into ``FOLDER/committed``: the number of the step.
"""

import os
import signal
import sys
import time
from pathlib import Path

folder = Path(sys.argv[1])
phases = os.open(folder / "phases", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
committed = os.open(folder / "committed", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
# A process whose parent ignores interrupts, as background jobs of shells do, ignores them, too.
signal.signal(signal.SIGINT, signal.default_int_handler)


def enter(phase: str) -> None:
    os.write(phases, f"{phase} {time.monotonic()}\n".encode())


enter("import")
import headrace as hr  # noqa: E402

enter("build")
x = hr.random_normal([64, 32])
queue = hr.FIFOQueue(50, [hr.float32], shapes=[[64, 32]])
fill = queue.enqueue(x)
hidden = queue.dequeue()
for width in (64, 64, 10):
    hidden = hr.layers.dense(hidden, width, activation=hr.nn.relu)
step = hr.train.create_global_step()
loss = hr.reduce_mean(hr.square(hidden))
train = hr.train.AdamOptimizer(0.01).minimize(loss, global_step=step)
saver = hr.train.Saver(max_to_keep=2)
enter("first step")
session = hr.Session()
session.run(hr.global_variables_initializer())
runner = hr.train.QueueRunner(queue, [fill] * 2)
coordinator = hr.train.Coordinator()
runner.create_threads(session, coordinator, daemon=True, start=True)
session.run(train)
enter("steps")
for _ in range(300):
    session.run(train)
enter("save")
for _ in range(30):
    session.run(train)
    path = saver.save(session, str(folder / "model"), step)
    os.write(committed, f"{path.rpartition('-')[2]}\n".encode())
enter("close")
coordinator.request_stop()
session.run(queue.close(cancel_pending_enqueues=True))
coordinator.join()
session.close()
enter("end")
