"""Asynchronous training on a parameter server and two workers.

    mpirun -n 3 python examples/asynchronous.py

Each worker trains the same variables with steps of its own. They live on the parameter server,
and are found there by their names.
"""

import time

import headrace as hr

STEPS = 100

with hr.dist.Cluster(ps=1) as cluster:
    if cluster.job_name == "ps":
        cluster.serve()
    else:
        images = hr.placeholder(hr.float32, [None, 64])
        labels = hr.placeholder(hr.float32, [None, 10])
        with hr.device("/job:ps/task:0"):
            weights = hr.Variable(hr.zeros([64, 10]), name="weights")
            bias = hr.Variable(hr.zeros([10]), name="bias")
            steps = hr.train.get_or_create_global_step()
        logits = hr.matmul(images, weights) + bias
        loss = hr.reduce_mean(hr.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        train_step = hr.train.GradientDescentOptimizer(0.5).minimize(loss, steps)
        right = hr.equal(hr.argmax(logits, 1), hr.argmax(labels, 1))
        accuracy = hr.reduce_mean(hr.cast(right, hr.float32))
        ready = hr.is_variable_initialized(steps)

        with hr.Session(cluster.target) as session:
            if cluster.is_chief:
                session.run([weights.initializer, bias.initializer])
                session.run(steps.initializer)
            while not session.run(ready):
                time.sleep(0.01)
            # Each worker draws its own batches.
            digits = hr.train.datasets.load_digits(seed=0)
            batches = hr.train.datasets.Dataset(
                digits.train.images, digits.train.labels, seed=cluster.task_index
            )
            for _ in range(STEPS):
                x, y = batches.next_batch(50)
                session.run(train_step, {images: x, labels: y})
            if cluster.is_chief:
                while session.run(steps) < STEPS * cluster.num_workers:
                    time.sleep(0.01)
                test = {images: digits.test.images, labels: digits.test.labels}
                print(f"{session.run(steps)} steps, accuracy {session.run(accuracy, test):.2f}")
