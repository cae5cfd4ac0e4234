"""Each row becomes a dozen tests: values, shapes, layouts, gradients and more."""

from headrace.errors import DTypeError
from headrace.testing import Reject, Sample, array, conformance, uniform

test_cube = conformance(
    [
        Sample("Cube", [uniform((3, 4), -2, 2)], oracle=lambda x: x**3),
        Sample("Cube", [array([0.0, -0.0, 1e30])], oracle=lambda x: x**3, grad=False, label="ends"),
        Reject("Cube", [array([1, 2], "int32")], error=DTypeError, match="floating, got int32"),
    ]
)
