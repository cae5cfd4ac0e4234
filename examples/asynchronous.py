"""Asynchronous training on a parameter server and two workers.

    mpirun -n 3 python examples/asynchronous.py --steps 100

Each worker trains the same variables with steps of its own, on its own share of the examples. The
variables live on the parameter server, and are found there by their names. What a worker read may
have been changed by others when its update comes: that staleness is counted.
"""

import argparse
import time

import headrace as hr

parser = argparse.ArgumentParser(description="Train asynchronously.")
parser.add_argument("--steps", type=int, default=100, help="steps of each worker")
STEPS = parser.parse_args().steps

with hr.dist.Cluster(ps=1) as cluster:
    if cluster.job_name == "ps":
        cluster.serve()
    else:
        digits = hr.train.datasets.load_digits(seed=0)
        # Every worker takes another share of the examples.
        data = hr.data.Dataset.from_tensor_slices((digits.train.images, digits.train.labels))
        data = data.shard(cluster.num_workers, cluster.task_index).shuffle(500, seed=1)
        batches = hr.data.make_one_shot_iterator(data.repeat().batch(50)).get_next()
        images = hr.placeholder_with_default(batches[0], [None, 64])
        labels = hr.placeholder_with_default(batches[1], [None, 10])
        with hr.device("/job:ps/task:0"):
            staleness = hr.train.StalenessRecorder()
            weights = hr.Variable(hr.zeros([64, 10]), name="weights")
            bias = hr.Variable(hr.zeros([10]), name="bias")
            steps = hr.train.get_or_create_global_step()
        logits = hr.matmul(images, weights) + bias
        loss = hr.reduce_mean(hr.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        update = hr.train.GradientDescentOptimizer(0.5).minimize(loss, steps)
        train_step = staleness.record(update)
        right = hr.equal(hr.argmax(logits, 1), hr.argmax(labels, 1))
        accuracy = hr.reduce_mean(hr.cast(right, hr.float32))
        ready = hr.is_variable_initialized(steps)

        with hr.Session(cluster.target) as session:
            if cluster.is_chief:
                session.run([v.initializer for v in hr.global_variables() if v is not steps])
                session.run(steps.initializer)
            while not session.run(ready):
                time.sleep(0.01)
            for _ in range(STEPS):
                session.run(train_step)
            if cluster.is_chief:
                while staleness.summary(session).updates < STEPS * cluster.num_workers:
                    time.sleep(0.01)
                test = {images: digits.test.images, labels: digits.test.labels}
                print(f"{session.run(steps)} steps, accuracy {session.run(accuracy, test):.2f}")
                print(staleness.summary(session))
