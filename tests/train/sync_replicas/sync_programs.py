"""Programs with synchronous replicas, for TensorFlow 1.15 and for Headrace.

Each gets the library and a function that opens a session for a replica, and returns numbers.
"""

import threading
import time
from functools import partial

import numpy as np

ROUNDS = 5
ROWS = 4
OPTIMIZERS = {
    "sgd": lambda tf: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda tf: tf.train.MomentumOptimizer(0.1, 0.9),
    "adam": lambda tf: tf.train.AdamOptimizer(0.05),
}


class Replica:
    """The graph of a replica, and its session."""

    def __init__(self, tf, cluster, index, wanted, total, make, num_tokens, **arguments):
        self.index = index
        self.graph = tf.Graph()
        with self.graph.as_default(), cluster.scope():
            with cluster.device("/job:ps/task:0"):
                self.step = tf.train.get_or_create_global_step()
            with cluster.device(f"/job:worker/task:{index}"):
                make(tf, self, cluster)
                self.optimizer = tf.train.SyncReplicasOptimizer(
                    self.inner, wanted, total, **dict(cluster.arguments(index), **arguments)
                )
                self.train = self.optimizer.apply_gradients(self.gradients(), global_step=self.step)
                self.hook = self.optimizer.make_session_run_hook(index == 0, num_tokens=num_tokens)
            self.session = cluster.session(self)

    def gradients(self):
        return self.pairs

    def run(self, fetches, feeds=None):
        return self.session.run(fetches, feed_dict=feeds)


def together(replicas, feeds=None):
    """Run a step of each replica at the same time; return what the steps yield."""
    results, wrong = [None] * len(replicas), []

    def work(place, replica):
        try:
            results[place] = replica.run(replica.train, feeds and feeds[place])
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=pair) for pair in enumerate(replicas)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    if wrong:
        raise wrong[0]
    assert all(result is not None for result in results), "a replica waits"
    return [int(result) for result in results]


def regression(optimizer):
    """Return what builds a linear model with a rare table in it."""

    def make(tf, replica, cluster):
        with cluster.device("/job:ps/task:0"):
            weights = tf.Variable(np.linspace(-1, 1, 6).reshape(3, 2).astype("f"), name="weights")
        with cluster.device("/job:ps/task:1"):
            table = tf.Variable(np.linspace(0, 1, 14).reshape(7, 2).astype("f"), name="table")
        replica.x = tf.placeholder(tf.float32, [None, 3])
        replica.rows = tf.placeholder(tf.int32, [None])
        found = tf.matmul(replica.x, weights) + tf.gather(table, replica.rows)
        replica.loss = tf.reduce_mean(tf.square(found - 1.0))
        replica.variables = [weights, table]
        replica.inner = OPTIMIZERS[optimizer](tf)
        replica.pairs = replica.inner.compute_gradients(replica.loss, [weights, table])

    return make


def batch(replica, round_):
    """Return what a replica is fed in a round."""
    draw = np.random.RandomState(100 * round_ + replica.index)
    x = draw.standard_normal((ROWS, 3)).astype("f")
    return {replica.x: x, replica.rows: draw.randint(0, 7, ROWS)}


def trained(tf, cluster, count, optimizer):
    replicas = [
        Replica(tf, cluster, i, count, count, regression(optimizer), 0) for i in range(count)
    ]
    steps = [
        together(replicas, [batch(replica, round_) for replica in replicas])
        for round_ in range(ROUNDS)
    ]
    values = replicas[0].run(replicas[0].variables)
    return [steps, [value.tolist() for value in values]]


def constants(tf, replica, cluster):
    """Gradients that differ by replica, of a dense and of a sparse variable."""
    with cluster.device("/job:ps/task:0"):
        dense = tf.Variable(0.0, name="dense")
    with cluster.device("/job:ps/task:1"):
        sparse = tf.Variable([[3.0], [4.0]], name="sparse")
    size = 0.1 + 0.2 * replica.index
    rows = tf.IndexedSlices(
        tf.constant([[size]]), tf.constant([replica.index % 2]), tf.constant([2, 1])
    )
    replica.variables = [dense, sparse]
    replica.inner = tf.train.GradientDescentOptimizer(2.0)
    replica.pairs = [(tf.constant(size), replica.variables[0]), (rows, replica.variables[1])]


def told(replica):
    values = replica.run([replica.step, *replica.variables])
    return [value.tolist() for value in values]


def awaited(replica, step):
    """Wait until the chief has applied a step."""
    until = time.time() + 60
    while replica.run(replica.step) < step and time.time() < until:
        time.sleep(0.01)
    return told(replica)


def one_by_one(tf, cluster):
    """The first tokens let replicas run one after the other; the next gradients are stale."""
    replicas = [Replica(tf, cluster, i, 2, 2, constants, 2) for i in range(2)]
    found = [[int(replica.run(replica.train)) for replica in replicas]]
    found.append(awaited(replicas[1], 1))
    found.append([int(replica.run(replica.train)) for replica in replicas])
    found.append(told(replicas[0]))
    found.append(together(replicas))
    found.append(told(replicas[1]))
    return found


def one_backup(tf, cluster):
    """Two of three replicas make a step; the third one's gradient is dropped."""
    replicas = [Replica(tf, cluster, i, 2, 3, constants, 3) for i in range(3)]
    found = [int(replicas[i].run(replicas[i].train)) for i in (0, 2)]
    found.append(awaited(replicas[1], 1))
    found += [int(replicas[i].run(replicas[i].train)) for i in (1, 0, 1, 2)]
    found.append(told(replicas[2]))
    found.append(together(replicas[:2]))
    found.append(told(replicas[2]))
    return found


def several_of_each(tf, cluster):
    """Two replicas bring four gradients."""
    replicas = [Replica(tf, cluster, i, 4, 2, constants, 2) for i in range(2)]
    found = []
    for step in (1, 2):
        found.append([int(replica.run(replica.train)) for replica in replicas])
        found.append(together(replicas))
        found.append(awaited(replicas[0], step))
    return found


def default_tokens(tf, cluster):
    """By default there are as many first tokens as gradients in a step."""
    replicas = [Replica(tf, cluster, i, 2, 2, constants, -1) for i in range(2)]
    found = [[int(replica.run(replica.train)) for replica in replicas]]
    found.append(awaited(replicas[0], 1))
    return found


def averages(tf, cluster):
    """Averages of the variables are kept at each step."""
    graph = tf.Graph()
    with graph.as_default(), cluster.scope():
        with cluster.device("/job:ps/task:0"):
            step = tf.train.get_or_create_global_step()
            v = tf.Variable(1.0, name="averaged")
        with cluster.device("/job:worker/task:0"):
            average = tf.train.ExponentialMovingAverage(0.5)
            optimizer = tf.train.SyncReplicasOptimizer(
                tf.train.GradientDescentOptimizer(0.5),
                1,
                variable_averages=average,
                variables_to_average=[v],
                **cluster.arguments(0),
            )
            train = optimizer.minimize(tf.square(v), global_step=step)
            hook = optimizer.make_session_run_hook(True, num_tokens=0)
        kept = average.average(v)

        class Only:
            index = 0

        Only.hook, Only.graph = hook, graph
        session = cluster.session(Only)
        found = [int(session.run(train)) for _ in range(3)]
        until = time.time() + 5
        while abs(session.run(kept) - session.run(v)) > 0.2 and time.time() < until:
            time.sleep(0.01)
        time.sleep(0.2)
        found.append([float(session.run(v)), float(session.run(kept))])
    return found


PROGRAMS = {
    "one_by_one": one_by_one,
    "one_backup": one_backup,
    "several_of_each": several_of_each,
    "default_tokens": default_tokens,
    "averages": averages,
}
for _name in OPTIMIZERS:
    for _count in (1, 2, 3, 4):
        PROGRAMS[f"{_name}_{_count}"] = partial(trained, count=_count, optimizer=_name)
