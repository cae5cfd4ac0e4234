"""Programs of very many instructions: their source is compiled in time that grows with them."""

from __future__ import annotations

import time

import numpy as np
import pytest

import headrace as hr
from headrace.errors import ExecutionError, InvalidInputError
from headrace_cpu.program import lower


def layers(count: int, variable: hr.Variable, x: hr.Tensor) -> hr.Tensor:
    for _ in range(count):
        x = hr.tanh(hr.matmul(x, variable))
    return x


@pytest.fixture
def flat(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all programs be as large ones are."""
    monkeypatch.setattr(lower, "_MOST_CELLS", 0)
    monkeypatch.setattr(lower, "_MOST_LINES", 0)


def trained(steps: int = 5) -> list[np.ndarray]:
    """Return what some steps yield, of kernels, plain ones, reads, updates and fetched arrays."""
    with hr.Graph().as_default():
        x = hr.placeholder(hr.float32, [None, 4])
        w = hr.Variable(np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4))
        y = layers(6, w, x)
        first, places = hr.unique(hr.reshape(hr.cast(y * 3.0, hr.int32), [-1]))
        change = hr.assign_sub(w, 0.01 * hr.matmul(x, y, transpose_a=True))
        with hr.Session() as session:
            session.run(hr.global_variables_initializer())
            feed = {x: np.arange(12, dtype=np.float32).reshape(3, 4) / 12}
            return [v for _ in range(steps) for v in session.run([y, first, places, change], feed)]


def test_a_large_program_computes_the_same(request: pytest.FixtureRequest) -> None:
    usual = trained()
    request.getfixturevalue("flat")
    for found, expected in zip(trained(), usual, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_an_error_in_a_large_program_names_operation_and_line(flat: None) -> None:
    x = hr.placeholder(hr.float32, [2, 2])
    inverse = hr.matrix_inverse(layers(3, hr.Variable(np.eye(2, dtype=np.float32)), x))  # here
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        with pytest.raises(ExecutionError, match=r"(?s)MatrixInverse.*test_large_programs") as told:
            session.run(inverse, {x: np.zeros((2, 2))})
    assert isinstance(told.value, InvalidInputError)
    assert "# here" in str(told.value) or "inverse = " in str(told.value)


def test_instances_of_a_large_program_are_free_when_its_session_is(flat: None) -> None:
    import gc
    import weakref

    from headrace_cpu.program.program import Program

    # A session of another test that nobody closed may still have kernels compiled behind it.
    others = {id(o): o for o in gc.get_objects() if type(o) is Program}
    x = hr.placeholder(hr.float32, [2, 2])
    y = layers(3, hr.Variable(np.eye(2, dtype=np.float32)), x)
    session = hr.Session()
    session.run(hr.global_variables_initializer())
    session.run(y, {x: np.eye(2)})
    found = (o for o in gc.get_objects() if type(o) is Program and id(o) not in others)
    alive = [weakref.ref(o) for o in found]
    assert alive
    session.close()
    del session
    gc.collect()
    assert not [program for ref in alive if (program := ref()) is not None]


@pytest.mark.parametrize("name", ["float32", "int32", "at", "solid", "seen", "point", "many"])
def test_operations_may_be_called_as_what_the_source_uses(name: str) -> None:
    x = hr.placeholder(hr.float32, [3, 3])
    inverse = hr.matrix_inverse(x, name=name)
    places = hr.unique(hr.cast(hr.reshape(inverse, [-1]), hr.int32), name=f"of/{name}")[1]
    wanted = [hr.sin(inverse) * hr.cos(inverse), hr.matmul(inverse, inverse), places + 1]
    with hr.Session() as session:
        for _ in range(4):
            sine, square, numbers = session.run(wanted, {x: 2 * np.eye(3)})
    half = 0.5 * np.eye(3)
    np.testing.assert_allclose(sine, np.sin(half) * np.cos(half), rtol=1e-6)
    np.testing.assert_allclose(square, half @ half)
    np.testing.assert_array_equal(numbers, np.ones(9))


def test_programs_compile_in_time_that_grows_with_them() -> None:
    def seconds(count: int) -> float:
        with hr.Graph().as_default(), hr.Session() as session:
            x = hr.placeholder(hr.float32, [1, 4])
            y = layers(count, hr.Variable(0.1 * np.eye(4, dtype=np.float32)), x)
            session.run(hr.global_variables_initializer())
            start = time.thread_time()
            session.run(y, {x: np.ones((1, 4))})
            return time.thread_time() - start

    seconds(100)
    # Python takes 24 times as long for a function with 4 times as many variables around it.
    assert seconds(4000) < 12 * max(seconds(800), 0.1)
