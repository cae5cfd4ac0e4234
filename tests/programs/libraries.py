"""The two libraries that random programs run on.

NumPy's runs on complex numbers, whose real parts are the values. With an imaginary part of 1e-30
times a direction in the inputs, the imaginary part of a result is its directional derivative to
full precision (the complex step), with no derivative rule written anywhere.

References:
    J. Martins, P. Sturdza, J. Alonso, The complex-step derivative approximation, ACM TOMS 29, 2003.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import headrace as hr


class Computing:
    """Statements compute at once, in plain Python and NumPy."""

    tanh = staticmethod(np.tanh)
    sin = staticmethod(np.sin)
    square = staticmethod(np.square)
    add = staticmethod(np.add)
    sub = staticmethod(np.subtract)
    mul = staticmethod(np.multiply)

    @staticmethod
    def halve(x: Any) -> Any:
        return x * 0.5

    @staticmethod
    def softplus(x: Any) -> Any:
        return np.log(1 + np.exp(x)) if abs(np.real(x)).max() < 30 else x * 1.0

    @staticmethod
    def sigmoid(x: Any) -> Any:
        return 1 / (1 + np.exp(-x))

    @staticmethod
    def reverse(x: Any) -> Any:
        return x[..., ::-1] if np.ndim(x) else x

    @staticmethod
    def normalise(x: Any) -> Any:
        return x / np.sqrt(np.sum(x * x) + 1)

    @staticmethod
    def total(x: Any) -> Any:
        return np.sum(x)

    @staticmethod
    def mix(x: Any, y: Any) -> Any:
        return 0.3 * x + np.sin(y)

    @staticmethod
    def pick(x: Any, y: Any) -> Any:
        return np.where(np.real(x) > np.real(y), x, y)

    @staticmethod
    def above(x: Any, threshold: float) -> bool:
        return bool(np.sum(np.real(x)) > threshold)

    @staticmethod
    def within(x: Any, limit: float) -> bool:
        return bool(np.sum(np.abs(np.real(x))) < limit)

    @staticmethod
    def cond(pred: bool, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        return then() if pred else otherwise()

    @staticmethod
    def loop(bound: int, going: Any, body: Any, start: Any) -> Any:
        count = 0
        while count < bound and going(start):
            start = body(start)
            count += 1
        return start

    @staticmethod
    def scan(body: Any, source: Any, start: Any) -> Any:
        rows = []
        for row in source:
            start = body(start, row)
            rows.append(start)
        return np.stack(rows)

    @staticmethod
    def map(body: Any, source: Any) -> Any:
        return np.stack([body(row) for row in source])

    @staticmethod
    def array(body: Any, start: Any) -> Any:
        parts = [start]
        for _ in range(2):
            parts.append(body(parts[-1]))
        return parts.__getitem__

    @staticmethod
    def function(body: Any) -> Any:
        return body


class Building:
    """Statements add to Headrace's default graph."""

    tanh = staticmethod(hr.tanh)
    sin = staticmethod(hr.sin)
    square = staticmethod(hr.square)
    add = staticmethod(hr.add)
    sub = staticmethod(hr.subtract)
    mul = staticmethod(hr.multiply)
    softplus = staticmethod(hr.nn.softplus)
    sigmoid = staticmethod(hr.sigmoid)
    total = staticmethod(hr.reduce_sum)
    cond = staticmethod(hr.cond)

    @staticmethod
    def halve(x: Any) -> Any:
        return x * 0.5

    @staticmethod
    def reverse(x: Any) -> Any:
        return x[..., ::-1] if x.shape.rank else x

    @staticmethod
    def normalise(x: Any) -> Any:
        return x / hr.sqrt(hr.reduce_sum(x * x) + 1)

    @staticmethod
    def mix(x: Any, y: Any) -> Any:
        return 0.3 * x + hr.sin(y)

    @staticmethod
    def pick(x: Any, y: Any) -> Any:
        return hr.where(x > y, x, y)

    @staticmethod
    def above(x: Any, threshold: float) -> Any:
        return hr.reduce_sum(x) > threshold

    @staticmethod
    def within(x: Any, limit: float) -> Any:
        return hr.reduce_sum(hr.abs(x)) < limit

    @staticmethod
    def loop(bound: int, going: Any, body: Any, start: Any) -> Any:
        return hr.while_loop(going, body, [start], maximum_iterations=bound)

    @staticmethod
    def scan(body: Any, source: Any, start: Any) -> Any:
        return hr.scan(body, source, initializer=start)

    @staticmethod
    def map(body: Any, source: Any) -> Any:
        return hr.map_fn(body, source)

    @staticmethod
    def array(body: Any, start: Any) -> Any:
        first = hr.TensorArray(start.dtype, 3).write(0, start)
        _, written = hr.while_loop(
            lambda i, _: i < 3,
            lambda i, array: (i + 1, array.write(i, body(array.read(i - 1)))),
            (1, first),
        )
        return written.read

    function = staticmethod(hr.function)


class Placing:
    """Statements build a graph, each on a device chosen at random."""

    def __init__(self, seed: int, devices: list[Any]) -> None:
        self.rng = np.random.default_rng(seed)
        self.devices = devices

    def __getattr__(self, name: str) -> Any:
        build = getattr(Building, name)

        def placed(*args: Any) -> Any:
            with hr.device(self.devices[int(self.rng.integers(len(self.devices)))]):
                return build(*args)

        return placed
