"""Logistic regression on the bundled digits with L-BFGS: all data in each step, few steps.

Each run of the training operation is one iteration with its line search, in the graph.
"""

from __future__ import annotations

import headrace as hr

digits = hr.train.datasets.load_digits(one_hot=True)

# The data are the same in every step, so they are constants, and nothing is fed.
images, labels = hr.constant(digits.train.images), hr.constant(digits.train.labels)
W = hr.Variable(hr.zeros([64, 10]))
b = hr.Variable(hr.zeros([10]))


def logits(x: hr.Tensor) -> hr.Tensor:
    """Return the logits of each digit for images."""
    return hr.matmul(x, W) + b


cross_entropy = hr.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits(images))
loss = hr.reduce_mean(cross_entropy) + 1e-4 * hr.reduce_sum(hr.square(W))

optimizer = hr.train.LBFGSOptimizer(gradient_tolerance=1e-4, loss_tolerance=1e-6)
step = optimizer.minimize(loss)

right = hr.equal(
    hr.argmax(logits(hr.constant(digits.test.images)), 1), hr.argmax(digits.test.labels, 1)
)
accuracy = hr.reduce_mean(hr.cast(right, hr.float32))

with hr.Session() as session:
    session.run(hr.global_variables_initializer())
    iterations = 0
    while not session.run(optimizer.status) and iterations < 200:
        session.run(step)
        iterations += 1
    found, evaluations = session.run([optimizer.loss, optimizer.evaluations])
    why = hr.train.LBFGSStatus(session.run(optimizer.status)).name.lower().replace("_", " ")
    print(f"{iterations} iterations, {evaluations} evaluations: {why}")
    print(f"loss {found:.4f}, test accuracy {session.run(accuracy):.3f}")
