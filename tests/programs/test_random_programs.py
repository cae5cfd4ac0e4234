"""Random programs give the same values and gradients in Headrace and in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.plugins.host import host, use_host
from tests.solo_target import SOLO, TASKS

from .generate import SHAPES, Generator, run
from .libraries import Building, Computing, Placing

pytestmark = [
    pytest.mark.needs("backend-cpu"),
    pytest.mark.needs("autodiff"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]

STEP = 1e-30
FAR = 1e-6
QUICK = 75
ALL = 2000
# Programs in one test: fewer, and pytest itself would take the time.
TOGETHER = 25
# Programs whose operations are put on random devices, as many in one test as take seconds; those
# behind the first test are left to the slow ones.
SCATTERED, FEW = 50, 10
GROUPS = [
    pytest.param(first, marks=[pytest.mark.slow] if first else [])
    for first in range(0, SCATTERED, FEW)
]


def _along(gradients: list[Any], directions: list[Any]) -> list[Any]:
    pairs = zip(gradients, directions, strict=True)
    return [hr.reduce_sum(g * d) for g, d in pairs if g is not None]


def check(seed: int, library: Any = Building, target: str = "", compiled: bool = False) -> None:
    """Compare a program, and its derivatives, with plain Python, run by either executor.

    Args:
        seed: Which program.
        library: What builds it.
        target: Of the sessions.
        compiled: Whether kernels are generated at once, rather than for what runs often.
    """
    inputs, statements, result = Generator(seed).program()
    rng = np.random.default_rng(seed + 10**6)
    points = [rng.normal(size=shape) for shape in SHAPES]
    directions = [rng.normal(size=shape) for shape in SHAPES]

    def computed(distance: float) -> tuple[Any, float]:
        """Return the value, and the derivative in the direction, some way along it."""
        pairs = zip(points, directions, strict=True)
        stepped = [p + (distance + 1j * STEP) * d for p, d in pairs]
        values: dict[int, Any] = dict(zip(inputs, stepped, strict=True))
        run(Computing, statements, values)
        found = np.asarray(values[result])
        return found.real, float(np.sum(found.imag) / STEP)

    expected, slope = computed(0.0)
    second = (computed(FAR)[1] - computed(-FAR)[1]) / (2 * FAR)

    with hr.Graph().as_default() as graph:
        # Half of the programs know shapes only when they run.
        static = seed % 2 == 0
        fed = [
            hr.placeholder(hr.float64, shape if static else [None] * len(shape)) for shape in SHAPES
        ]
        built: dict[int, Any] = dict(zip(inputs, fed, strict=True))
        run(library, statements, built)
        value = built[result]
        terms = _along(hr.gradients(value, fed), directions)
        total = hr.add_n(terms) if terms else hr.constant(0.0, hr.float64)
        # Every fifth program is differentiated twice, in the same direction.
        bent = _along(hr.gradients(total, fed), directions) if seed % 5 == 0 else []
        feeds = dict(zip(fed, points, strict=True))
        configs = (
            hr.Config(executor="plan", compile_after=0 if compiled else 2),
            hr.Config(executor="plan", optimize=False),
            hr.Config(executor="plain"),
        )
        for config in configs:
            with hr.Session(target, graph=graph, config=config) as session:
                found, sloped, curved = session.run([value, total, bent], feeds)
                np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
                np.testing.assert_allclose(sloped, slope, rtol=1e-7, atol=1e-7)
        if bent:
            np.testing.assert_allclose(sum(curved), second, rtol=1e-4, atol=1e-4)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(QUICK))
def test_a_random_program_equals_plain_python(seed: int) -> None:
    check(seed, compiled=seed % 10 == 0)


@pytest.mark.parametrize("first", GROUPS)
def test_programs_on_two_devices_equal_plain_python(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_CPU_DEVICES", "2")
    check_scattered(first, ["/cpu:0", "/cpu:1", None])


@pytest.mark.needs("dist-mpi")
@pytest.mark.parametrize("first", GROUPS)
def test_programs_on_three_tasks_equal_plain_python(first: int) -> None:
    with use_host(host().with_plugin("solo", "tests.solo_target")):
        check_scattered(first, [*TASKS, None], SOLO)


def check_scattered(first: int, devices: list[Any], target: str = "") -> None:
    for seed in range(first, first + FEW):
        try:
            check(seed, Placing(seed, devices), target)
        except Exception as error:
            error.add_note(f"program {seed}: {Generator(seed).program()}")
            raise


@pytest.mark.slow
@pytest.mark.parametrize("first", range(QUICK, QUICK + ALL, TOGETHER))
def test_many_random_programs_equal_plain_python(first: int) -> None:
    for seed in range(first, first + TOGETHER):
        try:
            check(seed, compiled=True)
        except Exception as error:
            error.add_note(f"program {seed}: {Generator(seed).program()}")
            raise
