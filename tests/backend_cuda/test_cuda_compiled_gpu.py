"""T4: compiled steps on a GPU: equal to the plain executor, and to themselves in a graph."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import headrace as hr

pytestmark = [pytest.mark.gpu, pytest.mark.needs("autodiff", "train")]

COMPILED = hr.Config(compile_after=0, verify=True)
PLAIN = hr.Config(executor="plain")


@pytest.fixture(autouse=True)
def graph():
    with hr.Graph().as_default() as graph, hr.device("/device:cuda:0"):
        yield graph


def convolutional():
    x = hr.placeholder(hr.float32, [8, 12, 12, 3])
    labels = hr.placeholder(hr.int32, [8])
    rng = np.random.default_rng(0)
    taps = hr.Variable(rng.normal(size=(3, 3, 3, 16)).astype(np.float32) / 5)
    w = hr.Variable(rng.normal(size=(6 * 6 * 16, 5)).astype(np.float32) / 20)
    scale, offset = hr.Variable(np.ones(16, np.float32)), hr.Variable(np.zeros(16, np.float32))
    y = hr.nn.conv2d(x, taps, [1, 1, 1, 1], "SAME")
    y = hr.nn.relu(hr.nn.fused_batch_norm(y, scale, offset)[0])
    y = hr.reshape(hr.nn.max_pool(y, 2, 2, "SAME"), [8, -1])
    losses = hr.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=hr.matmul(y, w))
    feeds = {x: rng.normal(size=(8, 12, 12, 3)).astype(np.float32), labels: np.arange(8) % 5}
    return hr.reduce_mean(losses), feeds, labels


def embedded():
    words = hr.placeholder(hr.int64, [6, 4])
    labels = hr.placeholder(hr.int64, [6])
    rng = np.random.default_rng(1)
    table = hr.Variable(rng.normal(size=(30, 8)).astype(np.float32))
    w = hr.Variable(rng.normal(size=(8, 30)).astype(np.float32))
    y = hr.reduce_sum(hr.nn.embedding_lookup(table, words), 1)
    losses = hr.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=hr.matmul(y, w))
    feeds = {words: rng.integers(0, 30, (6, 4)), labels: rng.integers(0, 30, 6)}
    return hr.reduce_mean(losses), feeds, labels


NETS = {"convolutional": convolutional, "embedded": embedded}
OPTIMIZERS = {
    "descent": lambda: hr.train.GradientDescentOptimizer(0.05),
    "momentum": lambda: hr.train.MomentumOptimizer(0.05, 0.9),
    "adam": lambda: hr.train.AdamOptimizer(0.01),
}


def trained(config, step, loss, feeds, steps=8):
    with hr.Session(config=config) as session:
        session.run(hr.global_variables_initializer())
        losses = [session.run([loss, step], feeds)[0] for _ in range(steps)]
        return losses, session.run(list(hr.trainable_variables()))


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("net", NETS)
def test_training_gives_the_values_of_the_plain_executor(net, optimizer):
    loss, feeds, _ = NETS[net]()
    step = OPTIMIZERS[optimizer]().minimize(loss)
    losses, values = trained(COMPILED, step, loss, feeds)
    plain_losses, plain_values = trained(PLAIN, step, loss, feeds)
    np.testing.assert_allclose(losses, plain_losses, rtol=2e-4)
    for one, other in zip(values, plain_values, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-3, atol=2e-4)
    assert losses[-1] < losses[0]


def test_equal_runs_give_equal_bits_where_they_are_asked_for():
    loss, feeds, _ = convolutional()
    step = hr.train.MomentumOptimizer(0.05, 0.9).minimize(loss)
    config = hr.Config(deterministic=True)
    first, second = (trained(config, step, loss, feeds) for _ in range(2))
    assert first[0] == second[0]
    for one, other in zip(first[1], second[1], strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("net", NETS)
def test_a_wrong_label_is_told_and_changes_nothing(net):
    loss, feeds, labels = NETS[net]()
    step = hr.train.AdamOptimizer(0.01).minimize(loss)
    wrong = {**feeds, labels: np.full(labels.shape.as_list(), 77)}
    with hr.Session(config=COMPILED) as session:
        session.run(hr.global_variables_initializer())
        for _ in range(4):
            session.run([loss, step], feeds)
            before = session.run(list(hr.global_variables()))
            with pytest.raises(hr.errors.InvalidInputError, match="index 77 is out of range"):
                session.run(step, wrong)
            for one, other in zip(session.run(list(hr.global_variables())), before, strict=True):
                np.testing.assert_array_equal(one, other)


def test_steps_of_many_threads_get_their_own_memory():
    x = hr.placeholder(hr.float32, [64, 64])
    y = hr.reduce_sum(hr.nn.softmax(hr.matmul(x, x) * 0.1) * x, 1)
    rng = np.random.default_rng(5)
    given = [rng.normal(size=(64, 64)).astype(np.float32) for _ in range(6)]
    with hr.Session(config=PLAIN) as session:
        expected = [session.run(y, {x: array}) for array in given]
    wrong = []
    with hr.Session(config=COMPILED) as session:

        def work(number):
            for _ in range(60):
                found = session.run(y, {x: given[number]})
                if not np.allclose(found, expected[number], rtol=1e-3, atol=1e-4):
                    wrong.append(number)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(50)
    assert wrong == []
