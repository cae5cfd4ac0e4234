"""The word vectors: words of the same company get close, and rare ones are no trouble."""

from __future__ import annotations

import os
import random
import re
from pathlib import Path

import pytest

from tests.children import run_python

pytestmark = [
    pytest.mark.needs("backend-cpu", "autodiff", "train"),
    pytest.mark.usefixtures("no_races"),
]
EXAMPLES = Path(__file__).parents[2] / "examples"
TOPICS = (
    ["sun", "moon", "star", "sky", "comet", "orbit"],
    ["bread", "butter", "cheese", "wine", "apple", "honey"],
)


def run(*arguments: str, timeout_s: float = 50.0) -> str:
    """Return what the example prints."""
    done = run_python("-W", "error", EXAMPLES / "word2vec.py", *arguments, timeout_s=timeout_s)
    return done.stdout


@pytest.mark.slow
def test_words_of_one_topic_get_close(tmp_path: Path) -> None:
    rng = random.Random(0)
    sentences = [" ".join(rng.choices(rng.choice(TOPICS), k=12)) for _ in range(400)]
    text = tmp_path / "text.txt"
    text.write_text(". ".join([*sentences, "once", "twice"]))
    printed = run(
        *("--text", str(text), "--steps=1500", "--words=13", "--units=8", "--batch=64"),
        *("--sampled=6", "--show=12"),
    )
    neighbours = dict(re.findall(r"^(\w+): (.+)$", printed, re.MULTILINE))
    assert sorted(neighbours) == sorted(TOPICS[0] + TOPICS[1])
    for topic in TOPICS:
        for word in topic:
            assert set(neighbours[word].split()[:5]) == set(topic) - {word}


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(not os.environ.get("HEADRACE_DATA"), reason="HEADRACE_DATA is not set")
def test_it_learns_the_text_corpus() -> None:
    losses = [float(loss) for loss in re.findall(r"loss ([\d.]+)", run(timeout_s=250))]
    assert losses[-1] < 3.9 < losses[0]
