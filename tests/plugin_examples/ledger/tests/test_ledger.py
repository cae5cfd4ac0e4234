"""Steps run on the device, alone and beside the cpu, and what crosses is counted once."""

import os
import subprocess
import sys

import numpy as np
import pytest

import headrace as hr
from headrace.errors import PlacementError

DEVICE = "/device:ledger:0"


@pytest.mark.parametrize("executor", ["plan", "plain"])
def test_training_on_the_device_gives_what_the_cpu_gives(executor):
    results = []
    for device in (DEVICE, "/device:cpu:0"):
        with hr.Graph().as_default(), hr.device(device):
            x = hr.constant(np.arange(12, dtype=np.float32).reshape(4, 3) / 10)
            w = hr.Variable(np.ones((3, 2), np.float32))
            loss = hr.reduce_sum(hr.tanh(hr.matmul(x, w)))
            (gradient,) = hr.gradients(loss, [w])
            step = hr.assign_sub(w, 0.1 * gradient)
            with hr.Session(config=hr.Config(executor=executor)) as session:
                session.run(w.initializer)
                for _ in range(3):
                    session.run(step)
                results.append(session.run([w, loss]))
    for here, there in zip(*results, strict=True):
        np.testing.assert_allclose(here, there, rtol=1e-6)


def test_values_cross_between_devices():
    x = hr.placeholder(hr.float32, [None])
    with hr.device(DEVICE):
        y = x * 2.0
    with hr.device("/device:cpu:0"):
        z = y + 1.0
    with hr.Session() as session:
        assert session.run(z, {x: [1.0, 2.0]}).tolist() == [3.0, 5.0]


def test_the_doctor_tells_of_it():
    done = subprocess.run(
        [sys.executable, "-m", "headrace", "doctor"], capture_output=True, text=True, check=False
    )
    assert "ledger" in done.stdout
    assert "bytes moved to the host" in done.stdout


def test_what_its_arrays_cannot_hold_is_not_placed_on_it():
    with hr.device(DEVICE):
        text = hr.strings.join([hr.placeholder(hr.string, []), hr.constant("b")])
    with hr.Session() as session, pytest.raises(PlacementError, match="ledger"):
        session.run(text, {text.op.inputs[0]: b"a"})


def test_nothing_is_there_where_there_is_none():
    program = f"""
import headrace as hr
with hr.device("{DEVICE}"):
    y = hr.constant(1.0) + hr.placeholder(hr.float32, [])
try:
    hr.Session().run(y, {{y.op.inputs[1]: 1.0}})
except hr.errors.HeadraceError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "LEDGER_DEVICES": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "LEDGER_DEVICES is 0" in done.stdout
