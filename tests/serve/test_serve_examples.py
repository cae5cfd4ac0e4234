"""Requests to classify and to regress: examples become messages that models parse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace_io import Example
from headrace_serve import CLASSIFY, REGRESS, LoadedModel, Server
from tests.serve.serving import ask, function, info

EXAMPLES = {"examples": info(hr.string)}
SEEN: list[Example] = []


def parsed(examples: Any) -> list[Example]:
    SEEN[:] = [Example.FromString(example) for example in examples]
    return SEEN


def number(example: Example) -> float:
    return float(example.features.feature["x"].float_list.value[0])


def regress(examples: Any) -> Any:
    return {"outputs": np.array([[number(e) * 2] for e in parsed(examples)], np.float32)}


def classify(examples: Any) -> Any:
    scores = [[number(e), 1 - number(e)] for e in parsed(examples)]
    labels = np.empty((len(scores), 2), object)
    labels[:] = [[b"yes", b"no"]] * len(scores)
    return {"classes": labels, "scores": np.array(scores, np.float32)}


def only(name: str) -> Any:
    return lambda examples: {name: classify(examples)[name]}


NUMBERS = info(shape=(None, 2))
SIGNATURES = {
    "serving_default": function(regress, EXAMPLES, {"outputs": info()}, REGRESS),
    "both": function(
        classify, EXAMPLES, {"classes": info(hr.string, (None, 2)), "scores": NUMBERS}, CLASSIFY
    ),
    "classes": function(
        only("classes"), EXAMPLES, {"classes": info(hr.string, (None, 2))}, CLASSIFY
    ),
    "scores": function(only("scores"), EXAMPLES, {"scores": NUMBERS}, CLASSIFY),
    "flat": function(
        lambda examples: {"scores": np.ones(len(examples))}, EXAMPLES, {"scores": info()}, CLASSIFY
    ),
    "wrong": function(lambda examples: {"y": np.ones(3)}, EXAMPLES, {"y": info()}, REGRESS),
    "numbers": function(lambda x: x, method_name=REGRESS),
}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with Server({"m": LoadedModel(SIGNATURES)}, port=0) as server:
        yield f"{server.url}"


def test_a_number_for_each_example(url: str) -> None:
    answer = ask(url, "/v1/models/m:regress", {"examples": [{"x": 0.1}, {"x": [0.25]}]})
    assert (answer.status, answer.data) == (200, {"results": [0.2, 0.5]})


@pytest.mark.parametrize(
    ("signature", "expected"),
    [
        ("both", [[["yes", 0.25], ["no", 0.75]]]),
        ("classes", [[["yes", 0.0], ["no", 0.0]]]),
        ("scores", [[["", 0.25], ["", 0.75]]]),
    ],
)
def test_labels_and_scores_for_each_example(url: str, signature: str, expected: Any) -> None:
    asked = {"signature_name": signature, "examples": [{"x": 0.25}]}
    answer = ask(url, "/v1/models/m:classify", asked)
    assert (answer.status, answer.data) == (200, {"results": expected})


def test_features_have_the_kind_of_their_values(url: str) -> None:
    example = {
        "x": [0.5, float("inf")],
        "whole": [1, -(2**63)],
        "truth": [True, False],
        "text": ["é", {"b64": "AP8="}],
        "none": [],
    }
    asked = {"context": {"shared": 7}, "examples": [example, {"x": 1.0}]}
    assert ask(url, "/v1/models/m:regress", asked).data == {"results": [1.0, 2.0]}
    first, second = SEEN
    features = first.features.feature
    assert list(features["x"].float_list.value) == [0.5, float("inf")]
    assert list(features["whole"].int64_list.value) == [1, -(2**63)]
    assert list(features["truth"].int64_list.value) == [1, 0]
    assert list(features["text"].bytes_list.value) == ["é".encode(), b"\x00\xff"]
    assert features["none"].WhichOneof("kind") is None
    assert [list(e.features.feature["shared"].int64_list.value) for e in (first, second)] == [
        [7]
    ] * 2


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "examples: expected a list of objects, got none"),
        ({"examples": {"x": 1}}, "examples: expected a list of objects, got an object with 'x'"),
        ({"examples": []}, "examples: expected at least one, got an empty list"),
        ({"examples": [1]}, "examples[0]: expected an object of features, got a number"),
        ({"examples": [{}], "context": 1}, "context: expected an object of features, got a number"),
        ({"examples": [{"x": None}]}, "examples[0]['x']: expected numbers, truth values or strin"),
        ({"examples": [{"x": [[1]]}]}, "examples[0]['x']: expected numbers, truth values or stri"),
        ({"examples": [{"x": [1, 2.5]}]}, "expected values of one kind, got float and int64"),
        ({"examples": [{"x": 1e39}]}, "examples[0]['x']: float32 cannot hold 1e+39"),
        ({"examples": [{"x": 2**63}]}, "int64 cannot hold 9223372036854775808"),
        ({"examples": [{"x": {"b64": "?"}}]}, "examples[0]['x']: this is no base64"),
        ({"examples": [{}, {"x": 1}], "context": {"x": 2}}, "examples[1]: the context has the fea"),
        ({"examples": [{}], "signature_name": "numbers"}, "the signature does not take examples"),
    ],
)
def test_malformed_examples_are_refused(url: str, asked: Any, said: str) -> None:
    answer = ask(url, "/v1/models/m:regress", asked)
    assert answer.status == 400
    assert said in answer.error


@pytest.mark.parametrize(
    ("method", "signature", "said"),
    [
        ("classify", "flat", "the model does not classify: expected outputs 'classes' or 'scores'"),
        ("regress", "wrong", "the model does not regress: expected an output 'outputs' of the sh"),
    ],
)
def test_models_that_put_out_something_else_are_named(
    url: str, method: str, signature: str, said: str
) -> None:
    asked = {"signature_name": signature, "examples": [{"x": 0.5}]}
    answer = ask(url, f"/v1/models/m:{method}", asked)
    assert answer.status == 500
    assert said in answer.error
