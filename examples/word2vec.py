"""Word vectors: a skip-gram model, whose softmax over all words is sampled.

Words that stand among the same words get vectors that are close. Set ``HEADRACE_DATA`` to a folder
that has a text in ``tinyshakespeare/input.txt``, or name a text file with ``--text``.

References:
    T. Mikolov, K. Chen, G. Corrado, J. Dean, Efficient estimation of word representations in
    vector space, arXiv:1301.3781, 2013.
    S. Jean, K. Cho, R. Memisevic, Y. Bengio, On using very large target vocabulary for neural
    machine translation, ACL 2015: the sampled softmax.
"""

from __future__ import annotations

import argparse
import collections
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

import headrace as hr


class Vocabulary:
    """The words of a text, the most frequent first, and the text as their numbers.

    Attributes:
        words: [n], the words; number 0 stands for all that are too rare.
        numbers: [length] int32, the text.
    """

    def __init__(self, text: str, size: int) -> None:
        """Number the words of a text, at most ``size`` of them."""
        found = re.findall(r"[a-z']+", text.lower())
        frequent = collections.Counter(found).most_common(size - 1)
        self.words = ["(rare)", *(word for word, _ in frequent)]
        places = {word: i for i, word in enumerate(self.words)}
        self.numbers = np.array([places.get(word, 0) for word in found], np.int32)

    def batches(self, size: int, window: int, *, seed: int = 0) -> Iterator[tuple[Any, Any]]:
        """Yield, without end, words [size] and, [size, 1], words that stand near them."""
        rng = np.random.default_rng(seed)
        distances = np.concatenate([np.arange(-window, 0), np.arange(1, window + 1)])
        while True:
            centers = rng.integers(window, len(self.numbers) - window, size)
            near = centers + rng.choice(distances, size)
            yield self.numbers[centers], self.numbers[near, None]


class SkipGram:
    """Vectors of words, from which the words around them are predicted.

    Attributes:
        inputs: [batch] int32, to be fed.
        labels: [batch, 1] int32, words near them, to be fed.
        loss: [], the mean of the sampled softmax cross-entropy in nats.
        chosen: [n] int32, words to be fed.
        nearest: [n, 8] int32, the words whose vectors are nearest to theirs, themselves first.
    """

    def __init__(self, words: int, units: int, sampled: int) -> None:
        """Build the model.

        Args:
            words: How many words there are.
            units: The length of a vector.
            sampled: How many words stand for all those that are not near.
        """
        self.inputs = hr.placeholder(hr.int32, [None])
        self.labels = hr.placeholder(hr.int32, [None, 1])
        self.vectors = hr.Variable(hr.random_uniform([words, units], -0.5 / units, 0.5 / units))
        weights = hr.Variable(hr.truncated_normal([words, units], stddev=units**-0.5))
        biases = hr.Variable(hr.zeros([words]))

        # Only the rows of the words in a batch, and of those that were drawn, are read and changed:
        # a step costs the same however many words there are. Words are drawn by their frequency,
        # which falls with their number about as the sampler takes for granted.
        embedded = hr.nn.embedding_lookup(self.vectors, self.inputs)
        losses = hr.nn.sampled_softmax_loss(
            weights, biases, self.labels, embedded, num_sampled=sampled, num_classes=words
        )
        self.loss = hr.reduce_mean(losses)

        self.chosen = hr.placeholder(hr.int32, [None])
        directions = hr.nn.l2_normalize(self.vectors, axis=1)
        cosines = hr.matmul(hr.gather(directions, self.chosen), directions, transpose_b=True)
        self.nearest = hr.nn.top_k(cosines, k=min(8, words))[1]


def main() -> None:
    """Train the vectors, and print which words are close to some frequent ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", help="a text file")
    parser.add_argument("--steps", type=int, default=20000)
    parser.add_argument("--words", type=int, default=3000, help="how many words have a vector")
    parser.add_argument("--units", type=int, default=64, help="the length of a vector")
    parser.add_argument("--batch", type=int, default=256, help="pairs of words to a step")
    parser.add_argument("--window", type=int, default=3, help="how far near words are at most")
    parser.add_argument("--sampled", type=int, default=64, help="words that are drawn in a step")
    parser.add_argument("--show", type=int, default=10, help="words whose neighbours are printed")
    options = parser.parse_args()

    hr.set_random_seed(1)
    text = hr.train.datasets.load_text(options.text)
    vocabulary = Vocabulary("".join(text.characters[i] for i in text.numbers), options.words)
    words = vocabulary.words
    model = SkipGram(len(words), options.units, min(options.sampled, len(words)))
    rate = hr.train.exponential_decay(5.0, hr.train.get_or_create_global_step(), 10000, 0.5)
    optimizer = hr.train.GradientDescentOptimizer(rate)
    train_step = optimizer.minimize(model.loss, global_step=hr.train.get_global_step())
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        mean = 0.0
        for step, (inputs, labels) in enumerate(
            vocabulary.batches(options.batch, options.window), 1
        ):
            feeds = {model.inputs: inputs, model.labels: labels}
            loss, _ = session.run([model.loss, train_step], feeds)
            mean += (float(loss) - mean) / min(step, 500)
            if step % 2000 == 0 or step == options.steps:
                print(f"step {step}, loss {mean:.3f}")
            if step == options.steps:
                break
        chosen = np.arange(1, min(options.show + 1, len(words)))
        for row in session.run(model.nearest, {model.chosen: chosen}):
            first, *others = (words[i] for i in row)
            print(f"{first}: {' '.join(others)}")


if __name__ == "__main__":
    main()
