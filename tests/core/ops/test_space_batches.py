"""What functions of images with distances between their elements refuse."""

from __future__ import annotations

import pytest

import headrace as hr
from headrace.errors import AttributeValueError, ShapeError


def same(images, axes, padding):
    return images


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"spatial_dims": 2}, AttributeValueError, "spatial_dims must be a list of axes, got 2"),
        ({"op": None}, AttributeValueError, "op must be a function, got None"),
        ({"dilation_rate": 2}, ShapeError, "dilation_rate must be a vector of known length"),
    ],
)
def test_refused(arguments, error, match) -> None:
    given = {"dilation_rate": [2, 2], "padding": "VALID", "op": same, **arguments}
    with pytest.raises(error, match=match):
        hr.nn.with_space_to_batch(hr.ones([1, 4, 4, 1]), **given)
