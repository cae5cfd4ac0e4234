"""Requests and answers over HTTP: addresses, methods, statuses, and messages."""

from __future__ import annotations

import base64
import http.client
import json
import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    DeadlineExceededError,
    InvalidArgumentError,
    ResourceExhaustedError,
    UnimplementedError,
)
from headrace_serve import CLASSIFY, LoadedModel, Server
from tests.serve.serving import Answer, ask, ask_on, counters, function, half_plus_two, info

PREDICT = "/v1/models/half_plus_two:predict"
PAIR = {"a": info(shape=(None, 2)), "n": info(hr.int32)}


def raising(error: Exception) -> Any:
    def call(x: Any) -> Any:
        raise error

    return function(call)


def two(a: Any, n: Any) -> dict[str, Any]:
    return {"sum": a.sum(1) + n, "twice": n * 2}


def strings(x: Any) -> dict[str, Any]:
    return {"text": x, "raw_bytes": x}


SIGNATURES = {
    "serving_default": function(half_plus_two),
    "pair": function(two, PAIR, {"sum": info(), "twice": info(hr.int32)}),
    "strings": function(
        strings,
        {"x": info(hr.string)},
        {"text": info(hr.string), "raw_bytes": info(hr.string)},
    ),
    "constant": function(lambda: np.arange(3), {}, {"y": info(hr.int64, (3,))}),
    "total": function(lambda x: x.sum(), outputs={"y": info(shape=())}),
    "scalar": function(lambda x: x + 1, {"x": info(hr.int32, ())}, {"y": info(hr.int32, ())}),
    "complex": function(lambda x: x * 1j, outputs={"y": info(hr.complex64)}),
    "classes": function(lambda x: x, method_name=CLASSIFY),
    "invalid": raising(InvalidArgumentError("x is odd")),
    "exhausted": raising(ResourceExhaustedError("no memory")),
    "late": raising(DeadlineExceededError("too late")),
    "lacking": raising(UnimplementedError("no kernel")),
    "broken": raising(ZeroDivisionError("division by zero")),
}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with Server({"half_plus_two": LoadedModel(SIGNATURES)}, port=0) as server:
        yield server.url


def predict(url: str, data: Any, signature: str = "serving_default") -> Answer:
    return ask(url, PREDICT, {"signature_name": signature, **data})


# -- what is answered


def test_status(url: str) -> None:
    answer = ask(url, "/v1/models/half_plus_two")
    expected = {
        "version": "1",
        "state": "AVAILABLE",
        "status": {"error_code": "OK", "error_message": ""},
    }
    assert answer == (200, {"model_version_status": [expected]}, answer.headers)
    assert ask(url, "/v1/models/half_plus_two/versions/1").data == answer.data


def test_metadata(url: str) -> None:
    data = ask(url, "/v1/models/half_plus_two/versions/1/metadata").data
    assert data["model_spec"] == {"name": "half_plus_two", "signature_name": "", "version": "1"}
    signatures = data["metadata"]["signature_def"]["signature_def"]
    assert signatures.keys() == SIGNATURES.keys()
    assert signatures["pair"]["inputs"]["a"] == {
        "dtype": "DT_FLOAT",
        "tensor_shape": {
            "dim": [{"size": "-1", "name": ""}, {"size": "2", "name": ""}],
            "unknown_rank": False,
        },
        "name": "",
    }
    assert signatures["pair"]["method_name"] == "tensorflow/serving/predict"


@pytest.mark.parametrize(
    ("signature", "request_", "expected"),
    [
        ("", {"instances": [1.0, 2.0, 5.0]}, {"predictions": [2.5, 3.0, 4.5]}),
        ("", {"instances": [{"x": 1.0}, {"x": 2}]}, {"predictions": [2.5, 3.0]}),
        ("", {"inputs": [1.0, 2.0]}, {"outputs": [2.5, 3.0]}),
        ("", {"inputs": {"x": [0.2]}}, {"outputs": [2.1]}),
        ("", {"inputs": []}, {"outputs": []}),
        (
            "pair",
            {"instances": [{"a": [1, 2], "n": 3}, {"n": 4, "a": [0, 0.5]}]},
            {"predictions": [{"sum": 6.0, "twice": 6}, {"sum": 4.5, "twice": 8}]},
        ),
        (
            "pair",
            {"inputs": {"a": [[1, 2]], "n": [3]}},
            {"outputs": {"sum": [6.0], "twice": [6]}},
        ),
        ("constant", {"inputs": {}}, {"outputs": [0, 1, 2]}),
        ("total", {"inputs": [1, 2]}, {"outputs": 3.0}),
        ("scalar", {"inputs": 4}, {"outputs": 5}),
    ],
)
def test_predictions(url: str, signature: str, request_: Any, expected: Any) -> None:
    answer = predict(url, request_, signature)
    assert (answer.status, answer.data) == (200, expected)
    assert answer.headers["content-type"] == "application/json"


def test_strings_are_text_or_base64(url: str) -> None:
    encoded = base64.b64encode(b"\xff\x00").decode()
    answer = predict(url, {"instances": ["aé", {"b64": encoded}]}, "strings")
    first, second = answer.data["predictions"]
    assert first == {"text": "aé", "raw_bytes": {"b64": base64.b64encode("aé".encode()).decode()}}
    # What is no text cannot be written as such.
    assert second == {"text": {"b64": encoded}, "raw_bytes": {"b64": encoded}}


def test_what_is_no_number_goes_in_and_out(url: str) -> None:
    answer = ask(url, PREDICT, b'{"instances": [NaN, Infinity, -Infinity, 0.1]}')
    assert json.dumps(answer.data) == '{"predictions": [NaN, Infinity, -Infinity, 2.05]}'


def test_a_long_request_is_answered_as_a_short_one(url: str) -> None:
    values = [float(i) for i in range(20000)]
    answer = predict(url, {"instances": values})
    assert answer.data["predictions"] == [value / 2 + 2 for value in values]


def test_a_connection_is_used_again_after_an_error(url: str) -> None:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
    for _ in range(3):
        assert ask_on(connection, PREDICT, b"{").status == 400
        assert ask_on(connection, PREDICT, {"instances": [2]}).data == {"predictions": [3.0]}
    connection.close()


# -- what is refused

MALFORMED: list[tuple[bytes, str]] = [
    (b"", "the request has no body: expected a JSON object"),
    (b"{", "the request is no JSON: Expecting property name"),
    (b'{"instances": [1,]}', "the request is no JSON"),
    (b"\xff\xfe\x00", "the request is no JSON"),
    (b"[1, 2]", "expected a JSON object, got a list"),
    (b"3", "expected a JSON object, got a number"),
    (b'{"inputs": ' + b"[" * 100000, "the JSON of the request is nested too deeply"),
    (b'{"inputs": ' + b"9" * 5000 + b"}", "the request is no JSON"),
    (b"{}", "expected one of 'instances' and 'inputs', got neither, but nothing"),
    (b'{"instance": [1]}', "expected one of 'instances' and 'inputs', got neither, but 'instance'"),
    (b'{"instances": [1], "inputs": [1]}', "expected one of 'instances' and 'inputs', got both"),
    (b'{"instances": 1}', "instances: expected a list with a value per row, got a number"),
    (b'{"instances": []}', "instances: expected at least one row, got an empty list"),
    (b'{"instances": ["a"]}', "instances: expected float32, got a string at [0]"),
    (b'{"instances": [[1]]}', "instances: expected the shape [?], got [1, 1]"),
    (b'{"instances": [1, {"x": 1}]}', "instances[1]: expected a value, as the first row is, got"),
    (b'{"instances": [{"x": 1}, 1]}', "instances[1]: expected an object, as the first row is"),
    (b'{"instances": [{"y": 1}]}', "instances[0]: expected the inputs 'x': 'x' is missing, 'y' is"),
    (b'{"instances": [{"x": 1}, {}]}', "instances[1]: expected the inputs 'x': 'x' is missing"),
    (b'{"inputs": {"x": [1], "xx": 1}}', "inputs: expected the inputs 'x': 'xx' is unknown (did"),
    (b'{"instances": [{"x": [1]}]}', "instances, input 'x': expected the shape [?], got [1, 1]"),
    (b'{"inputs": [1], "signature_name": 3}', "signature_name: expected a string, got a number"),
    (
        b'{"inputs": [1], "signature_name": "pear"}',
        "version 1 of the model 'half_plus_two' has no signature 'pear'; its signatures: ",
    ),
    (
        b'{"inputs": [1], "signature_name": "pair"}',
        "expected an object with the inputs 'a', 'n' by name, got a list",
    ),
    (
        b'{"instances": [1], "signature_name": "total"}',
        "the output 'y' has the shape [] for 1 instances; ask with 'inputs', by columns",
    ),
    (b'{"instances": [1], "signature_name": "invalid"}', "x is odd"),
]


@pytest.mark.parametrize(("body", "said"), MALFORMED, ids=range(len(MALFORMED)))
def test_malformed_requests_get_one_message(url: str, body: bytes, said: str) -> None:
    answer = ask(url, PREDICT, body, method="POST")
    assert answer.status == 400
    assert said in answer.error
    assert len(answer.error.splitlines()) == 1


@pytest.mark.parametrize(
    ("signature", "status", "said"),
    [
        ("invalid", 400, "x is odd"),
        ("exhausted", 503, "no memory"),
        ("late", 504, "too late"),
        ("lacking", 501, "no kernel"),
        ("broken", 500, "the model failed: ZeroDivisionError: division by zero"),
        ("complex", 501, "the output 'y': JSON has no form for values of complex"),
    ],
)
def test_errors_of_a_model_have_their_status(
    url: str, signature: str, status: int, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "headrace.serve"):
        answer = predict(url, {"inputs": [1]}, signature)
    assert answer.status == status
    assert said in answer.error
    assert bool(caplog.records) == (status == 500)


@pytest.mark.parametrize(
    ("method", "path", "status", "said"),
    [
        ("POST", "/v1/models/half:predict", 404, "no model is called 'half'; models: 'half_plus_t"),
        ("POST", "/v1/models/half_plus_to:predict", 404, "did you mean 'half_plus_two'?"),
        ("GET", "/v1/models/half", 404, "no model is called 'half'"),
        ("POST", "/v1/models/half_plus_two/versions/7:predict", 404, "has no version 7 that answe"),
        ("GET", "/v1/models/half_plus_two/versions/7", 404, "its versions: 1"),
        ("GET", "/v1/models/half_plus_two/versions/7/metadata", 404, "has no version 7"),
        ("GET", "/", 404, "there is nothing at /: expected /v1/models/NAME"),
        ("POST", "/v1/models/half_plus_two:explain", 404, "there is nothing at"),
        ("GET", "/v1/models/half_plus_two/labels/stable", 404, "there is nothing at"),
        ("GET", PREDICT, 405, "is asked with POST, got GET"),
        ("PUT", PREDICT, 405, "is asked with POST, got PUT"),
        ("POST", "/v1/models/half_plus_two", 405, "is asked with GET, got POST"),
        ("DELETE", "/metrics", 405, "is asked with GET, got DELETE"),
    ],
)
def test_addresses_and_methods(url: str, method: str, path: str, status: int, said: str) -> None:
    answer = ask(url, path, b"{}", method=method)
    assert answer.status == status
    assert said in answer.error
    if status == 405:
        assert answer.headers["allow"] == ("POST" if path == PREDICT else "GET, HEAD")


def test_a_signature_for_another_method_is_named(url: str) -> None:
    answer = ask(url, "/v1/models/half_plus_two:classify", {"examples": [{}]})
    assert answer.status == 400
    assert "'serving_default' is for 'tensorflow/serving/predict'" in answer.error
    assert "'tensorflow/serving/classify': 'classes'" in answer.error


def test_compressed_requests_are_refused(url: str) -> None:
    answer = ask(url, PREDICT, b"x", headers={"content-encoding": "gzip"})
    assert (answer.status, answer.error) == (
        415,
        "content-encoding: expected no compression, got 'gzip'",
    )


# -- the server itself


def test_readiness_and_counters(url: str) -> None:
    assert ask(url, "/readyz").data == {"status": "ok"}
    assert ask(url, "/livez").data == {"status": "ok"}
    before = counters(url)
    predict(url, {"instances": [1, 2, 3]})
    predict(url, {"instances": []})
    after = counters(url)
    name = 'headrace_serve_requests_total{method="predict",status="%d"}'
    assert after[name % 200] == before.get(name % 200, 0) + 1
    assert after[name % 400] == before.get(name % 400, 0) + 1
    model = '{model="half_plus_two",version="1",signature="serving_default"}'
    rows = f"headrace_serve_step_rows_total{model}"
    assert after[rows] == before.get(rows, 0) + 3
    assert after["headrace_serve_in_flight"] == 1
