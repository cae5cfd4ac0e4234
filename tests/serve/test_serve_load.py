"""Ten thousand requests from sixteen clients at once: every answer comes, and is the right one."""

from __future__ import annotations

import http.client
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import headrace as hr
from headrace_serve import Batching, Server
from tests.serve.serving import ask_on, counters

pytestmark = pytest.mark.needs("backend-cpu")

CLIENTS = 16
SIZES = (1, 2, 5)
WEIGHTS = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "layer"
    with hr.Graph().as_default(), hr.Session() as session:
        x = hr.placeholder(hr.float32, [None, 8], name="x")
        w = hr.Variable(WEIGHTS)
        session.run(hr.global_variables_initializer())
        y = hr.nn.relu(hr.matmul(x, w))
        hr.saved_model.simple_save(
            session, str(folder), {"x": x}, {"y": y, "total": hr.reduce_sum(y, 1)}
        )
    return folder


def client(server: Server, number: int, requests: int, stop: threading.Event) -> list[str]:
    """Ask in turn, one in ten wrongly; return what was not as expected."""
    rng = np.random.default_rng(number)
    connection = http.client.HTTPConnection(server.host, server.port, timeout=60)
    faults = []
    for index in range(requests):
        if stop.is_set():
            break
        x = rng.integers(-9, 10, (SIZES[index % len(SIZES)], 8)).astype(np.float32)
        if index % 10 == 9:
            answer = ask_on(
                connection, "/v1/models/layer:predict", {"instances": x[:, 1:].tolist()}
            )
            if (answer.status, answer.error[:10]) != (400, "instances:"):
                faults.append(f"{answer}")
            continue
        answer = ask_on(connection, "/v1/models/layer:predict", {"instances": x.tolist()})
        expected = np.maximum(x @ WEIGHTS, 0)
        rows = answer.data.get("predictions", []) if answer.status == 200 else []
        good = len(rows) == len(x) and all(
            np.allclose(row["y"], y, rtol=1e-4, atol=1e-3)
            and np.allclose(row["total"], y.sum(), rtol=1e-4, atol=1e-3)
            for row, y in zip(rows, expected, strict=True)
        )
        if not good:
            faults.append(f"{number}/{index}: {answer}")
    connection.close()
    return faults


def hold(model: Path, requests: int) -> None:
    stop = threading.Event()
    with Server(model, port=0, batching=Batching(max_batch_size=32)) as server:
        with ThreadPoolExecutor(CLIENTS) as pool:
            each = requests // CLIENTS
            found = [pool.submit(client, server, n, each, stop) for n in range(CLIENTS)]
            try:
                faults = [fault for future in found for fault in future.result(timeout=500)]
            finally:
                stop.set()
        assert not faults, faults[:3]
        numbers = counters(server.url)
    labels = '{model="layer",version="1",signature="serving_default"}'
    wrong = CLIENTS * (each // 10)
    assert numbers['headrace_serve_requests_total{method="predict",status="400"}'] == wrong
    right = CLIENTS * each - wrong
    assert numbers['headrace_serve_requests_total{method="predict",status="200"}'] == right
    assert numbers[f"headrace_serve_step_requests_total{labels}"] == right
    # Requests that came at the same time were answered by one step.
    assert numbers[f"headrace_serve_steps_total{labels}"] < right


def test_many_clients_at_once_get_their_own_answers(model: Path) -> None:
    hold(model, 320)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_ten_thousand_requests_from_sixteen_clients(model: Path) -> None:
    hold(model, 10_000)
