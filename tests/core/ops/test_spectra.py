"""Mistakes in calls of Fourier transforms and mel scales."""

import numpy as np
import pytest

import headrace as hr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sample_rate": [1, 2]}, r"sample_rate must be one number, got shape \[2\]"),
        ({"lower_edge_hertz": "low"}, r"lower_edge_hertz must be a real number, got 'low'"),
        ({"sample_rate": np.array(2j)}, "sample_rate must be a real number, got array"),
        ({"upper_edge_hertz": [[1.0]]}, r"upper_edge_hertz must be one number, got shape \[1, 1\]"),
        ({"num_mel_bins": 0}, "num_mel_bins must be positive, got 0"),
    ],
)
def test_a_mel_scale_needs_numbers(arguments, message):
    with pytest.raises(hr.errors.AttributeValueError, match=message):
        hr.signal.linear_to_mel_weight_matrix(**arguments)


def test_a_mel_scale_needs_a_known_sample_rate():
    with pytest.raises(hr.errors.AttributeValueError, match="a number or a constant tensor"):
        hr.signal.linear_to_mel_weight_matrix(sample_rate=hr.placeholder(hr.float32, []))


@pytest.mark.needs("backend-cpu")
@pytest.mark.parametrize("transform", ["fft", "ifft", "fft2d", "ifft2d", "fft3d", "ifft3d"])
def test_transforms_need_their_dimensions_in_the_step(transform):
    count = int(transform[-2]) if transform.endswith("d") else 1
    fed = hr.placeholder(hr.complex64)
    result = getattr(hr.signal, transform)(fed)
    with (
        hr.Session() as session,
        pytest.raises(hr.errors.InvalidArgumentError, match=f"at least {count} dimensions"),
    ):
        session.run(result, {fed: np.ones([2] * (count - 1), np.complex64)})


@pytest.mark.needs("backend-cpu")
def test_many_empty_segments_of_strings_cost_a_pointer_each():
    joined = hr.strings.unsorted_segment_join(["a", "b"], [7, 7], 3_000_000, "-")
    with hr.Session() as session:
        values = session.run(joined)
    assert values.shape == (3_000_000,)
    assert values[7] == b"a-b"
    assert values[0] == b""
