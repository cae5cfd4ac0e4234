"""Whatever JSON comes is either a valid request or refused with one message: nothing else."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pytest

import headrace as hr
from headrace_serve import CLASSIFY, Batching, LoadedModel
from headrace_serve.counters import Counters
from headrace_serve.errors import RequestError
from headrace_serve.models.model import Version
from headrace_serve.requests.parsed_request import parse_request
from tests.serve.serving import function, info

DTYPES = ("float16", "bfloat16", "float32", "float64", "int8", "uint64", "bool", "string")
INFOS = {name: info(name, (None, None)) for name in DTYPES}
SIGNATURES = {
    **{name: function(lambda x: x, {"x": INFOS[name]}) for name in DTYPES},
    "serving_default": function(lambda x, y: x, {"x": info(), "y": info(hr.string)}),
    "any": function(lambda x: x, {"x": info(shape=None)}),
    "examples": function(lambda x: x, {"x": info(hr.string)}, method_name=CLASSIFY),
}
VERSION = Version(1, LoadedModel(SIGNATURES), Batching(), model="m", counters=Counters())

NAMES = ("instances", "inputs", "examples", "context", "signature_name", "x", "y", "b64")
LEAVES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 127, 2**24 + 1, 2**63, 2**64, 10**400, -(10**30)),
    *(0.5, -0.0, 1e39, 1e300, float("nan"), float("inf"), float("-inf")),
    *("", "a", "AP8=", "\ud800", "e\u0301", *SIGNATURES),
)


def value(rng: random.Random, depth: int) -> Any:
    """Return any JSON, often lists of one kind of value, which tensors are."""
    kind = rng.random()
    if depth == 0 or kind < 0.3:
        return rng.choice(LEAVES)
    if kind < 0.5:
        rows, leaf = rng.randrange(4), rng.choice(LEAVES)
        return [[leaf] * rng.choice([2, 2, 2, 1])] * rows
    if kind < 0.75:
        return [value(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {rng.choice(NAMES): value(rng, depth - 1) for _ in range(rng.randrange(4))}


def request(rng: random.Random) -> Any:
    """Return what may be a request."""
    if rng.random() < 0.1:
        return value(rng, 3)
    name = rng.choice([*SIGNATURES, *SIGNATURES, "", "pear", 3])
    kept = rng.choice(["instances", "inputs", "examples"])
    found = {"signature_name": name, kept: value(rng, 3)}
    return found if rng.random() < 0.8 else {**found, rng.choice(NAMES): value(rng, 2)}


def outcome(method: str, asked: Any) -> str:
    """Return what became of a request: that it was read, or its status."""
    try:
        request = parse_request(VERSION, method, json.dumps(asked).encode())
    except RequestError as error:
        refused = error
    else:
        signature = SIGNATURES[request.signature_name]
        assert request.inputs.keys() == signature.inputs.keys()
        for name, array in request.inputs.items():
            assert signature.inputs[name].fits(array.shape)
            assert array.dtype == signature.inputs[name].dtype.numpy
        return "read"
    assert 0 < len(refused.message) < 1000
    return str(refused.status)


def ask_many(count: int) -> None:
    rng = random.Random(0)
    outcomes: Counter[str] = Counter()
    for _ in range(count):
        method = rng.choice(["predict", "predict", "classify"])
        asked = request(rng)
        try:
            outcomes[outcome(method, asked)] += 1
        except Exception as error:
            raise AssertionError(f"{method} {asked!r}") from error
    assert outcomes.keys() == {"read", "400"}
    # Enough of both to mean something.
    assert min(outcomes.values()) > count / 50


def test_strange_requests_are_questions_or_refused() -> None:
    ask_many(3000)


@pytest.mark.slow
def test_many_strange_requests_are_questions_or_refused() -> None:
    ask_many(200_000)
