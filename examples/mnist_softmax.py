"""Softmax regression on MNIST, as the TensorFlow tutorials of 2015 have it.

Set ``HEADRACE_DATA`` to a folder that has the four files of MNIST in its folder ``mnist``.
"""

from __future__ import annotations

import headrace as hr

mnist = hr.train.datasets.load_mnist(one_hot=True)

# The model: one weight for each pixel and digit.
x = hr.placeholder(hr.float32, [None, 784])
W = hr.Variable(hr.zeros([784, 10]))
b = hr.Variable(hr.zeros([10]))
y = hr.nn.softmax(hr.matmul(x, W) + b)

# The loss, and the operation that makes one step of training.
y_ = hr.placeholder(hr.float32, [None, 10])
cross_entropy = hr.reduce_mean(-hr.reduce_sum(y_ * hr.log(y), axis=[1]))
train_step = hr.train.GradientDescentOptimizer(0.5).minimize(cross_entropy)

init = hr.global_variables_initializer()
sess = hr.Session()
sess.run(init)
for _ in range(1000):
    batch_xs, batch_ys = mnist.train.next_batch(100)
    sess.run(train_step, feed_dict={x: batch_xs, y_: batch_ys})

correct_prediction = hr.equal(hr.argmax(y, 1), hr.argmax(y_, 1))
accuracy = hr.reduce_mean(hr.cast(correct_prediction, hr.float32))
print(sess.run(accuracy, feed_dict={x: mnist.test.images, y_: mnist.test.labels}))
