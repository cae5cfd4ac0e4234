"""What layers refuse, with the kinds of errors that TensorFlow raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr

pytestmark = pytest.mark.usefixtures("graph")

E = hr.errors
L = hr.layers


def images(*shape: int | None) -> Any:
    return hr.placeholder(hr.float32, shape or (2, 6, 6, 3))


# What is asked for, the error, what it says.
Refusal = tuple[Callable[[], Any], type[Exception], str]

ARGUMENTS: dict[str, Refusal] = {
    **{
        f"strides and dilation_rate {rank}d": (
            lambda call=call, rank=rank: call(
                images(2, *[6] * rank, 3), 4, 3, strides=2, dilation_rate=2
            ),
            ValueError,
            r"strides or dilation_rate must be 1, got strides \(2,.*hr.nn.convolution takes both",
        )
        for rank, call in enumerate((L.conv1d, L.conv2d, L.conv3d), 1)
    },
    **{
        f"training {value!r} of {call.__name__}": (
            lambda call=call, value=value: call(images(), training=value),
            TypeError,
            f"training must be True, False or a scalar bool tensor, got {value!r}",
        )
        for call in (L.dropout, L.batch_normalization)
        for value in ("x", 2, 1.5)
    },
    "units": (lambda: L.Dense(-1), ValueError, "units must be at least 0, got -1"),
    "filters": (lambda: L.Conv2D(-1, 3), ValueError, "filters must be at least 0"),
    "filters kind": (lambda: L.Conv2D("many", 3), ValueError, "filters must be an integer"),
    "kernel_size": (
        lambda: L.Conv2D(4, (1, 2, 3)),
        ValueError,
        r"kernel_size must be an integer or 2 of them, got \(1, 2, 3\)",
    ),
    "kernel_size kind": (lambda: L.Conv2D(4, "33"), ValueError, "kernel_size must be an integer"),
    "kernel_size none": (lambda: L.Conv1D(4, None), ValueError, "kernel_size must be an integer"),
    "kernel_size item": (lambda: L.Conv2D(4, (1, None)), ValueError, "kernel_size must be"),
    "strides": (lambda: L.MaxPooling2D(2, None), ValueError, "strides must be an integer or 2"),
    "padding": (lambda: L.Conv2D(4, 3, padding="full"), ValueError, "one of valid, same, got"),
    "causal": (lambda: L.Conv2D(4, 3, padding="causal"), ValueError, "padding must be one of"),
    "padding kind": (lambda: L.MaxPooling1D(2, 2, padding=1), ValueError, "padding must be one"),
    "data_format": (
        lambda: L.conv2d(images(), 4, 3, data_format="NHWC"),
        ValueError,
        "data_format must be 'channels_last' or 'channels_first', got 'NHWC'",
    ),
    "activation": (lambda: L.Dense(2, "rellu"), ValueError, "no activation 'rellu'.*softplus"),
    "activation kind": (lambda: L.Dense(2, 3), TypeError, "activation must be a function"),
    "initializer": (
        lambda: L.Dense(2, kernel_initializer="glorot"),
        ValueError,
        "no initializer 'glorot'",
    ),
    "regularizer": (
        lambda: L.Dense(2, kernel_regularizer=0.1),
        ValueError,
        "kernel_regularizer must be a function, got 0.1",
    ),
    "rate": (lambda: L.dropout(images(), 1.5, training=True), ValueError, r"rate must be in \[0,"),
    "unknown": (lambda: L.Dense(2, colour="red"), TypeError, "Dense takes no argument colour"),
    "depth_multiplier": (
        lambda: L.SeparableConv2D(4, 3, depth_multiplier=0),
        ValueError,
        "depth_multiplier must be positive",
    ),
    "l1": (lambda: L.l1_regularizer(1), ValueError, "scale must be a float, got the integer 1"),
    "l2": (lambda: L.l2_regularizer(-0.5), ValueError, "scale must be at least 0, got -0.5"),
    "l1_l2": (lambda: L.l1_l2_regularizer(1, 0.5), ValueError, "scale_l1 must be a float"),
    "axis": (lambda: L.BatchNormalization(axis="last"), TypeError, "axis must be an integer or"),
    "renorm_clipping": (
        lambda: L.BatchNormalization(renorm=True, renorm_clipping={"rmaxx": 1}),
        ValueError,
        r"takes the keys rmin, rmax and dmax, got \['rmaxx'\]",
    ),
    "input_spec axes": (lambda: L.InputSpec(axes={"a": 1}), TypeError, "integers as keys"),
    "input_spec axis": (lambda: L.InputSpec(ndim=2, axes={2: 1}), ValueError, "axis 2 is beyond"),
}


@pytest.mark.parametrize("name", list(ARGUMENTS))
def test_an_argument_that_stands_for_nothing_is_refused(name: str) -> None:
    call, kind, text = ARGUMENTS[name]
    with pytest.raises(kind, match=text):
        call()


INPUTS: dict[str, Refusal] = {
    "dense rank": (lambda: L.dense(images(3), 2), ValueError, "at least 2 dimensions, got shape"),
    "dense size": (
        lambda: L.dense(images(3, None), 2),
        ValueError,
        "needs to know the last dimension of its input, got shape",
    ),
    "dense rank unknown": (
        lambda: L.dense(hr.placeholder(hr.float32), 2),
        ValueError,
        "layer 'dense_1' does not take the input: the rank must be known",
    ),
    "dense dtype": (
        lambda: L.dense(hr.constant([[1, 2]]), 2),
        TypeError,
        "computes with floating or complex numbers, got int32",
    ),
    "conv rank": (lambda: L.conv2d(images(2, 3), 4, 3), ValueError, "expected 4 dimensions, got"),
    "conv channels": (
        lambda: L.conv2d(images(2, 6, 6, None), 4, 3),
        ValueError,
        "needs to know the number of channels",
    ),
    "transpose channels": (
        lambda: L.conv3d_transpose(images(2, 6, 6, 6, None), 4, 3),
        ValueError,
        "needs to know the number of channels",
    ),
    "too small": (lambda: L.conv2d(images(2, 2, 2, 3), 4, 3), ValueError, "larger|smaller"),
    "pool rank": (lambda: L.max_pooling1d(images(), 2, 2), ValueError, "expected 3 dimensions"),
    "flatten": (lambda: L.flatten(hr.placeholder(hr.float32)), ValueError, "rank must be known"),
    "norm rank": (
        lambda: L.batch_normalization(hr.placeholder(hr.float32)),
        ValueError,
        "needs to know the rank",
    ),
    "norm axis": (
        lambda: L.batch_normalization(images(), axis=4),
        ValueError,
        r"axis \[4\] is out of range for 4 dimensions",
    ),
    "norm axes": (
        lambda: L.batch_normalization(images(), axis=[1, -3]),
        ValueError,
        "names one twice",
    ),
    "norm size": (
        lambda: L.batch_normalization(images(2, None)),
        ValueError,
        r"needs to know the sizes of axes \[1\]",
    ),
    "virtual size": (
        lambda: L.batch_normalization(images(), virtual_batch_size=0),
        ValueError,
        "virtual_batch_size must be positive, got 0",
    ),
    "virtual axis": (
        lambda: L.batch_normalization(images(), axis=0, virtual_batch_size=2),
        ValueError,
        "which therefore cannot be in axis",
    ),
    "virtual adjustment": (
        lambda: L.batch_normalization(images(), virtual_batch_size=2, adjustment=lambda s: (1, 0)),
        ValueError,
        "exclude each other",
    ),
    "virtual shape": (
        lambda: L.batch_normalization(images(2, None, 3), virtual_batch_size=2, training=True),
        ValueError,
        "needs all sizes but that of the batch",
    ),
}


@pytest.mark.parametrize("name", list(INPUTS))
def test_an_input_that_does_not_fit_is_refused(name: str) -> None:
    call, kind, text = INPUTS[name]
    with pytest.raises(kind, match=text):
        call()


def test_a_second_input_must_fit_the_variables() -> None:
    layer = L.Dense(2, name="fc")
    layer(hr.constant([[1.0, 2.0]]))
    with pytest.raises(E.ShapeError, match="'fc' does not take the input: expected size 2 along"):
        layer(hr.constant([[1.0, 2.0, 3.0]]))


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (L.InputSpec(max_ndim=1), "at most 1 dimensions"),
        (L.InputSpec(dtype="int32"), "expected int32, got float32"),
        (L.InputSpec(shape=(None, 3)), r"expected shape \[None, 3\]"),
    ],
)
def test_an_input_spec_refuses_what_it_does_not_describe(spec: Any, text: str) -> None:
    layer = L.Layer()
    layer.input_spec = spec
    with pytest.raises(E.ShapeError, match=text):
        layer(hr.constant([[1.0, 2.0]]))
    with pytest.raises(E.DTypeError, match="must be an InputSpec"):
        layer.input_spec = 3


def test_an_input_spec_is_made_again_from_its_arguments() -> None:
    spec = L.InputSpec(dtype="float32", ndim=2, axes={-1: 3})
    again = L.InputSpec.from_config(spec.get_config())
    assert repr(again) == repr(spec) == "InputSpec(dtype=float32, ndim=2, axes={-1: 3})"


def test_names_that_are_taken_or_missing() -> None:
    x = hr.constant([[1.0, 2.0]])
    L.dense(x, 2, name="fc")
    with pytest.raises(ValueError, match="'fc/kernel' exists already"):
        L.dense(x, 2, name="fc")
    with pytest.raises(ValueError, match="no variable 'other/kernel'"):
        L.dense(x, 2, name="other", reuse=True)
    with pytest.raises(ValueError, match=r"shape \[2, 2\], expected \[2, 3\]"):
        L.dense(x, 3, name="fc", reuse=True)


def test_what_a_layer_has_only_after_a_call() -> None:
    layer = L.Dense(2)
    with pytest.raises(ValueError, match="has no scope yet"):
        _ = layer.scope_name
    with pytest.raises(ValueError, match="no variables to count yet"):
        layer.count_params()
    for name in ("input", "output", "input_shape", "output_shape"):
        with pytest.raises(AttributeError, match=f"never called: it has no {name}"):
            getattr(layer, name)
    layer(hr.constant([[1.0, 2.0]]))
    with pytest.raises(ValueError, match="called 1 times, there is no call 3"):
        layer.get_input_at(3)


def test_a_layer_of_a_program_that_is_wrong() -> None:
    class Nothing(L.Layer):
        def call(self, inputs: Any) -> None:
            return None

    with pytest.raises(ValueError, match="call returned None"):
        Nothing()(hr.constant(1.0))
    with pytest.raises(TypeError, match="add_weight takes no argument color"):
        L.Layer().add_weight("w", [], color="red")
    with pytest.raises(ValueError, match="returned 2 numbers"):
        L.Layer(name="parted").add_weight("w", [1], partitioner=lambda **_: [1, 1])
    with pytest.raises(NotImplementedError, match="does not define compute_output_shape"):
        L.Layer().compute_output_shape([1])


@pytest.mark.needs("backend-cpu")
def test_values_that_do_not_fit_the_variables() -> None:
    layer = L.Dense(2)
    layer(hr.constant([[1.0, 2.0]]))
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        with pytest.raises(ValueError, match="has 2 variables, got 1 values"):
            layer.set_weights([np.ones([2, 2])])
        with pytest.raises(ValueError, match=r"'dense/bias' has shape \[2\], got a value of"):
            layer.set_weights([np.ones([2, 2]), np.ones(3)])
