"""Means and gradients, with sizes that are known early, late, or wrong."""

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError, ShapeError
from headrace.testing import Reject, Sample, array, conformance, uniform


def mean(x, size):
    return np.convolve(x, np.ones(int(size)) / size, "valid")


test_rolling_mean = conformance(
    [
        Sample("RollingMean", [uniform((7,), -2, 2), array(3, "int32")], oracle=mean),
        Sample("RollingMean", [uniform((5,), -2, 2), array(5, "int64")], oracle=mean, label="all"),
        Sample("RollingMean", [uniform((4,), -2, 2), array(1, "int32")], oracle=mean, label="one"),
        Reject(
            "RollingMean",
            [array([1.0, 2.0], "float32"), array(3, "int32")],
            error=AttributeValueError,
            match="size must be in 1 to 2, got 3",
        ),
        Reject(
            "RollingMean",
            [array([[1.0]], "float32"), array(1, "int32")],
            error=ShapeError,
            match="x must have one axis",
        ),
    ]
)


@pytest.mark.parametrize("executor", ["plan", "plain"])
def test_a_step_may_compute_the_size(executor):
    x, size = hr.placeholder(hr.float32, [None]), hr.placeholder(hr.int32, [])
    y = hr.rolling_mean(x, size + 1)
    (gradient,) = hr.gradients(y, [x])
    with hr.Session(config=hr.Config(executor=executor)) as session:
        for n in (1, 2):
            found, slope = session.run([y, gradient], {x: [1.0, 2.0, 6.0, 7.0], size: n})
            np.testing.assert_allclose(found, mean([1, 2, 6, 7], n + 1), rtol=1e-6)
            np.testing.assert_allclose(
                slope, [[0.5, 1, 1, 0.5], [1 / 3, 2 / 3, 2 / 3, 1 / 3]][n - 1]
            )
        with pytest.raises(AttributeValueError, match="size must be in 1 to 4, got 5"):
            session.run(y, {x: [1.0, 2.0, 6.0, 7.0], size: 4})
