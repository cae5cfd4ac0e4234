"""Convolutions of the kinds that the networks of the other workloads have not, and auto-encoders.

Arrays are [batch, height, width, channels]; PyTorch sees the same memory as channels_last.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from benchmarks.suite.case import Arrays, Case, normal, weight

BATCH, SIDE, CHANNELS = 8, 32, 32


def _images(rng: np.random.Generator) -> Arrays:
    return {
        "x": normal(rng, BATCH, SIDE, SIDE, CHANNELS),
        "y": normal(rng, BATCH, SIDE, SIDE, CHANNELS),
    }


class _Dataflow:
    """Layers of the API that Headrace and TensorFlow share."""

    def __init__(self, tf: Any) -> None:
        self.tf = tf

    def conv(self, x: Any, kernel: Any, stride: int = 1, rate: int = 1) -> Any:
        rates = [1, rate, rate, 1]
        return self.tf.nn.conv2d(x, kernel, [1, stride, stride, 1], "SAME", dilations=rates)

    def depthwise(self, x: Any, kernel: Any) -> Any:
        return self.tf.nn.depthwise_conv2d(x, kernel, [1, 1, 1, 1], "SAME")

    def up(self, x: Any, kernel: Any) -> Any:
        """Return a transposed convolution to twice the size; kernels are [.., out, in]."""
        batch, height, width, _ = x.shape.as_list()
        shape = [batch, 2 * height, 2 * width, kernel.shape.as_list()[2]]
        return self.tf.nn.conv2d_transpose(x, kernel, shape, [1, 2, 2, 1], "SAME")

    def norm(self, x: Any, scale: Any, shift: Any) -> Any:
        return self.tf.nn.fused_batch_norm(x, scale, shift, epsilon=1e-3)[0]

    def relu(self, x: Any) -> Any:
        return self.tf.nn.relu(x)

    def halve(self, x: Any) -> Any:
        return self.tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")

    def join(self, x: Any, y: Any) -> Any:
        return self.tf.concat([x, y], 3)

    def loss(self, found: Any, wanted: Any) -> Any:
        return self.tf.reduce_mean(self.tf.squared_difference(found, wanted))

    def images(self, x: Any) -> Any:
        return x


class _Torch:
    """The same layers of PyTorch."""

    def __init__(self, torch: Any) -> None:
        self.torch, self.f = torch, torch.nn.functional

    def conv(self, x: Any, kernel: Any, stride: int = 1, rate: int = 1) -> Any:
        kernel = kernel.permute(3, 2, 0, 1)
        size = kernel.shape[2]
        if stride == 1:
            return self.f.conv2d(x, kernel, padding=rate * (size // 2), dilation=rate)
        before = (size - 1) // 2 if size % 2 == 0 else (size - stride) // 2
        after = size - stride - before if size > stride else 0
        x = self.f.pad(x, (before, after, before, after)) if size > stride else x
        return self.f.conv2d(x, kernel, stride=stride)

    def depthwise(self, x: Any, kernel: Any) -> Any:
        channels = kernel.shape[2]
        return self.f.conv2d(x, kernel.permute(2, 3, 0, 1), padding=1, groups=channels)

    def up(self, x: Any, kernel: Any) -> Any:
        # A kernel of 4 reaches one position over each border, which is cut off.
        return self.f.conv_transpose2d(x, kernel.permute(3, 2, 0, 1), stride=2, padding=1)

    def norm(self, x: Any, scale: Any, shift: Any) -> Any:
        return self.f.batch_norm(x, None, None, scale, shift, training=True, eps=1e-3)

    def relu(self, x: Any) -> Any:
        return self.torch.relu(x)

    def halve(self, x: Any) -> Any:
        return self.f.max_pool2d(x, 2)

    def join(self, x: Any, y: Any) -> Any:
        return self.torch.cat([x, y], 1)

    def loss(self, found: Any, wanted: Any) -> Any:
        return self.f.mse_loss(found, wanted)

    def images(self, x: Any) -> Any:
        return x.permute(0, 3, 1, 2)


class _Jax:
    """The same layers of JAX."""

    def __init__(self, jax: Any) -> None:
        self.jax, self.numpy = jax, jax.numpy

    def conv(self, x: Any, kernel: Any, stride: int = 1, rate: int = 1, groups: int = 1) -> Any:
        return self.jax.lax.conv_general_dilated(
            x,
            kernel,
            (stride, stride),
            "SAME",
            rhs_dilation=(rate, rate),
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=groups,
        )

    def depthwise(self, x: Any, kernel: Any) -> Any:
        return self.conv(x, kernel.swapaxes(2, 3), groups=kernel.shape[2])

    def up(self, x: Any, kernel: Any) -> Any:
        return self.jax.lax.conv_transpose(
            x,
            kernel,
            (2, 2),
            "SAME",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            transpose_kernel=True,
        )

    def norm(self, x: Any, scale: Any, shift: Any) -> Any:
        mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
        return (x - mean) * (scale * self.jax.lax.rsqrt(variance + 1e-3)) + shift

    def relu(self, x: Any) -> Any:
        return self.jax.nn.relu(x)

    def halve(self, x: Any) -> Any:
        window = (1, 2, 2, 1)
        lowest = -self.numpy.inf
        return self.jax.lax.reduce_window(x, lowest, self.jax.lax.max, window, window, "VALID")

    def join(self, x: Any, y: Any) -> Any:
        return self.numpy.concatenate([x, y], 3)

    def loss(self, found: Any, wanted: Any) -> Any:
        return ((found - wanted) ** 2).mean()

    def images(self, x: Any) -> Any:
        return x


def _trained(name: str, what: str, network: Any, state: Any, steps: int = 5) -> Case:
    """Return a case that trains ``network(layers, state, x)`` towards images."""

    def program(kind: Any) -> Any:
        def run(library: Any, p: Any, x: Any) -> Any:
            layers = kind(library)
            return layers.loss(network(layers, p, layers.images(x["x"])), layers.images(x["y"]))

        return run

    what = f"{what}; batch {BATCH} of {SIDE} x {SIDE} x {CHANNELS}, momentum"
    programs = program(_Dataflow), program(_Torch), program(_Jax)
    return Case(
        name, what, *programs, state=state, batch=_images, optimizer="momentum", steps=steps
    )


def _norms(count: int, channels: int) -> Arrays:
    made: Arrays = {}
    for n in range(count):
        made[f"scale{n}"] = np.ones(channels, np.float32)
        made[f"shift{n}"] = np.zeros(channels, np.float32)
    return made


def _batch_norm_state(rng: np.random.Generator) -> Arrays:
    kernels = {f"k{n}": weight(rng, 3, 3, CHANNELS, CHANNELS) for n in range(3)}
    return {**kernels, **_norms(3, CHANNELS)}


def _batch_norm(layers: Any, p: Any, x: Any) -> Any:
    for n in range(3):
        x = layers.conv(x, p[f"k{n}"])
        x = layers.relu(layers.norm(x, p[f"scale{n}"], p[f"shift{n}"]))
    return x


def _bottleneck_state(rng: np.random.Generator) -> Arrays:
    made = _norms(4, CHANNELS)
    for n in range(2):
        made[f"in{n}"] = weight(rng, 1, 1, CHANNELS, 16)
        made[f"mid{n}"] = weight(rng, 3, 3, 16, 16)
        made[f"out{n}"] = weight(rng, 1, 1, 16, CHANNELS)
    return {name: value for name, value in made.items() if name[-1] in "01"}


def _bottleneck(layers: Any, p: Any, x: Any) -> Any:
    for n in range(2):
        y = layers.relu(layers.conv(x, p[f"in{n}"]))
        y = layers.relu(layers.conv(y, p[f"mid{n}"]))
        y = layers.norm(layers.conv(y, p[f"out{n}"]), p[f"scale{n}"], p[f"shift{n}"])
        x = layers.relu(x + y)
    return x


def _separable_state(rng: np.random.Generator) -> Arrays:
    made: Arrays = {}
    for n in range(2):
        made[f"depth{n}"] = normal(rng, 3, 3, CHANNELS, 1, scale=0.3)
        made[f"point{n}"] = weight(rng, 1, 1, CHANNELS, CHANNELS)
    return made


def _separable(layers: Any, p: Any, x: Any) -> Any:
    for n in range(2):
        x = layers.relu(layers.depthwise(x, p[f"depth{n}"]))
        x = layers.relu(layers.conv(x, p[f"point{n}"]))
    return x


def _dilated(layers: Any, p: Any, x: Any) -> Any:
    for n, rate in enumerate((1, 2, 4)):
        x = layers.relu(layers.conv(x, p[f"k{n}"], rate=rate))
    return x


def _coder_state(rng: np.random.Generator) -> Arrays:
    return {
        "down0": weight(rng, 3, 3, CHANNELS, 48),
        "down1": weight(rng, 3, 3, 48, 64),
        "up0": normal(rng, 4, 4, 48, 64, scale=0.06),
        "up1": normal(rng, 4, 4, CHANNELS, 48, scale=0.07),
    }


def _coder(layers: Any, p: Any, x: Any) -> Any:
    x = layers.halve(layers.relu(layers.conv(x, p["down0"])))
    x = layers.halve(layers.relu(layers.conv(x, p["down1"])))
    return layers.up(layers.relu(layers.up(x, p["up0"])), p["up1"])


def _u_net_state(rng: np.random.Generator) -> Arrays:
    return {
        "in": weight(rng, 3, 3, CHANNELS, 32),
        "down": weight(rng, 3, 3, 32, 64),
        "bottom": weight(rng, 3, 3, 64, 64),
        "up0": normal(rng, 4, 4, 64, 64, scale=0.06),
        "join0": weight(rng, 3, 3, 128, 32),
        "up1": normal(rng, 4, 4, 32, 32, scale=0.08),
        "join1": weight(rng, 3, 3, 64, CHANNELS),
    }


def _u_net(layers: Any, p: Any, x: Any) -> Any:
    first = layers.relu(layers.conv(x, p["in"]))
    second = layers.relu(layers.conv(layers.halve(first), p["down"]))
    bottom = layers.relu(layers.conv(layers.halve(second), p["bottom"]))
    x = layers.join(layers.up(bottom, p["up0"]), second)
    x = layers.relu(layers.conv(x, p["join0"]))
    return layers.conv(layers.join(layers.up(x, p["up1"]), first), p["join1"])


LENGTH = 512


def _conv1d_torch(torch: Any, p: Any, x: Any) -> Any:
    f, y = torch.nn.functional, x["x"].transpose(1, 2)
    y = torch.relu(f.conv1d(y, p["k0"].permute(2, 1, 0), padding=2))
    y = f.conv1d(y, p["k1"].permute(2, 1, 0), padding=2)
    return f.mse_loss(y, x["y"].transpose(1, 2))


def _conv1d_dataflow(tf: Any, p: Any, x: Any) -> Any:
    y = tf.nn.relu(tf.nn.conv1d(x["x"], p["k0"], 1, "SAME"))
    y = tf.nn.conv1d(y, p["k1"], 1, "SAME")
    return tf.reduce_mean(tf.squared_difference(y, x["y"]))


def _conv_jax(axes: str) -> Any:
    spec = (f"N{axes}C", f"{axes}IO", f"N{axes}C")

    def program(jax: Any, p: Any, x: Any) -> Any:
        ones = (1,) * len(axes)

        def conv(y: Any, kernel: Any) -> Any:
            return jax.lax.conv_general_dilated(y, kernel, ones, "SAME", dimension_numbers=spec)

        y = conv(jax.nn.relu(conv(x["x"], p["k0"])), p["k1"])
        return ((y - x["y"]) ** 2).mean()

    return program


def _conv3d_dataflow(tf: Any, p: Any, x: Any) -> Any:
    y = tf.nn.relu(tf.nn.conv3d(x["x"], p["k0"], [1] * 5, "SAME"))
    y = tf.nn.conv3d(y, p["k1"], [1] * 5, "SAME")
    return tf.reduce_mean(tf.squared_difference(y, x["y"]))


def _conv3d_torch(torch: Any, p: Any, x: Any) -> Any:
    f, y = torch.nn.functional, x["x"].permute(0, 4, 1, 2, 3)
    y = torch.relu(f.conv3d(y, p["k0"].permute(4, 3, 0, 1, 2), padding=1))
    y = f.conv3d(y, p["k1"].permute(4, 3, 0, 1, 2), padding=1)
    return f.mse_loss(y, x["y"].permute(0, 4, 1, 2, 3))


def _two(*shape: int, channels: int) -> Any:
    def state(rng: np.random.Generator) -> Arrays:
        return {f"k{n}": weight(rng, *shape, channels, channels) for n in range(2)}

    return state


def _pair(*shape: int) -> Any:
    return lambda rng: {"x": normal(rng, *shape), "y": normal(rng, *shape)}


def _auto_state(rng: np.random.Generator) -> Arrays:
    sizes = (784, 256, 32, 256, 784)
    made: Arrays = {}
    for n, (inner, outer) in enumerate(itertools.pairwise(sizes)):
        made[f"w{n}"] = weight(rng, inner, outer)
        made[f"b{n}"] = np.zeros(outer, np.float32)
    return made


def _auto(product: Any, act: Any, p: Any, x: Any) -> Any:
    for n in range(4):
        x = product(x, p[f"w{n}"]) + p[f"b{n}"]
        x = act(x) if n < 3 else x
    return x


CASES = (
    _trained("conv-batch-norm", "three 3x3 with batch norm", _batch_norm, _batch_norm_state),
    _trained("conv-1x1", "two bottlenecks of 1x1, 3x3, 1x1", _bottleneck, _bottleneck_state),
    _trained("conv-depthwise", "two of depthwise 3x3 and 1x1", _separable, _separable_state),
    _trained(
        "conv-dilated",
        "three 3x3 at rates 1, 2, 4",
        _dilated,
        lambda rng: {f"k{n}": weight(rng, 3, 3, CHANNELS, CHANNELS) for n in range(3)},
    ),
    _trained("conv-transposed", "auto-encoder with two transposed 4x4", _coder, _coder_state),
    _trained("u-net", "two levels down and up, with joins", _u_net, _u_net_state, steps=3),
    Case(
        "conv-1d",
        f"two convolutions of 5 over {LENGTH} x 64, batch 16, sgd",
        _conv1d_dataflow,
        _conv1d_torch,
        _conv_jax("W"),
        state=_two(5, channels=64),
        batch=_pair(16, LENGTH, 64),
        optimizer="sgd",
        steps=5,
    ),
    Case(
        "conv-3d",
        "two convolutions of 3x3x3 over 16 x 16 x 16 x 16, batch 2, sgd",
        _conv3d_dataflow,
        _conv3d_torch,
        _conv_jax("DHW"),
        state=_two(3, 3, 3, channels=16),
        batch=_pair(2, 16, 16, 16, 16),
        optimizer="sgd",
        steps=5,
    ),
    Case(
        "auto-encoder",
        "dense 784, 256, 32, 256, 784, batch 128, adam",
        lambda tf, p, x: tf.reduce_mean(
            tf.squared_difference(_auto(tf.matmul, tf.sigmoid, p, x["x"]), x["x"])
        ),
        lambda torch, p, x: torch.nn.functional.mse_loss(
            _auto(torch.mm, torch.sigmoid, p, x["x"]), x["x"]
        ),
        lambda jax, p, x: (
            (_auto(jax.numpy.matmul, jax.nn.sigmoid, p, x["x"]) - x["x"]) ** 2
        ).mean(),
        state=_auto_state,
        batch=lambda rng: {"x": normal(rng, 128, 784)},
        optimizer="adam",
        rate=0.001,
    ),
)
