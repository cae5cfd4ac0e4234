"""Convolutions, pools, and morphology."""

from __future__ import annotations

from typing import Any

import headrace as hr

from .libraries import F, jax, jnp, lax, torch
from .rows import apart, normal, row

LAYOUTS = {1: ("NWC", "WIO", "NWC"), 2: ("NHWC", "HWIO", "NHWC"), 3: ("NDHWC", "DHWIO", "NDHWC")}


def _conv(x: Any, w: Any, padding: Any = "SAME", strides: Any = 1, **rest: Any) -> Any:
    """Convolve in JAX, channels last."""
    rank = w.ndim - 2
    return lax.conv_general_dilated(
        x,
        w,
        (strides,) * rank if isinstance(strides, int) else strides,
        padding,
        dimension_numbers=LAYOUTS[rank],
        **rest,
    )


def _transposed(x: Any, w: Any, padding: str, stride: int, shape: tuple[int, ...]) -> Any:
    """Return the gradient of a convolution with respect to its input: what is transposed."""
    _, pull = jax.vjp(lambda y: _conv(y, w, padding, stride), jnp.zeros(shape, x.dtype))
    return pull(x)[0]


def _for_filter(x: Any, dy: Any, shape: tuple[int, ...], stride: int = 1, **rest: Any) -> Any:
    _, pull = jax.vjp(lambda w: _conv(x, w, "SAME", stride, **rest), jnp.zeros(shape, x.dtype))
    return pull(dy)[0]


def _depthwise(x: Any, w: Any, padding: Any = "SAME", strides: Any = 1, **rest: Any) -> Any:
    height, width, channels, multiplier = w.shape
    w = jnp.reshape(w, (height, width, 1, channels * multiplier))
    return _conv(x, w, padding, strides, feature_group_count=channels, **rest)


def _torch_transposed(x: Any, w: Any, rank: int, **rest: Any) -> Any:
    """Convolve transposed in PyTorch: filters are in, out, space there, and space, out, in here."""
    function = getattr(F, f"conv_transpose{rank}d")
    w = torch.movedim(w, (-1, -2), (0, 1))
    return torch.movedim(function(torch.movedim(x, -1, 1), w, **rest), 1, -1)


def _pool(name: str, x: Any, *arguments: Any, **rest: Any) -> Any:
    return torch.movedim(getattr(F, name)(torch.movedim(x, -1, 1), *arguments, **rest), 1, -1)


def _max_window(x: Any, size: int, stride: int, padding: str) -> Any:
    window, steps = (1, size, size, 1), (1, stride, stride, 1)
    return lax.reduce_window(x, -jnp.inf, lax.max, window, steps, padding)


def _dilation(x: Any, w: Any, sign: float = 1.0) -> Any:
    """Return the largest sums of windows and filter, of the patches that JAX cuts out."""
    height, width, channels = w.shape
    n, rows, columns, _ = x.shape
    parts = lax.conv_general_dilated_patches(
        x, (height, width), (1, 1), "VALID", dimension_numbers=LAYOUTS[2]
    )
    parts = parts.reshape(n, rows - height + 1, columns - width + 1, channels, height, width)
    return sign * jnp.max(sign * parts + jnp.transpose(w, (2, 0, 1)), (-2, -1))


IMAGE = normal(2, 5, 6, 2)
FILTER = normal(3, 2, 2, 4)

ROWS = [
    row(
        "nn.conv1d",
        "lax.conv_general_dilated",
        normal(2, 7, 3),
        normal(3, 3, 4),
        ours=lambda x, w: hr.nn.conv1d(x, w, 2, "SAME"),
        theirs=lambda x, w: _conv(x, w, "SAME", 2),
    ),
    *[
        row(
            "nn.conv2d",
            "lax.conv_general_dilated",
            IMAGE,
            FILTER,
            ours=lambda x, w, p=padding, s=stride, d=dilation: hr.nn.conv2d(
                x,
                w,
                strides=[1, s, s, 1],
                padding=p if isinstance(p, str) else [[0, 0], *map(list, p), [0, 0]],
                dilations=[1, d, d, 1],
            ),
            theirs=lambda x, w, p=padding, s=stride, d=dilation: _conv(
                x, w, p, s, rhs_dilation=(d, d)
            ),
            mode=mode,
        )
        for mode, padding, stride, dilation in [
            ("SAME", "SAME", 1, 1),
            ("VALID, stride 2", "VALID", 2, 1),
            ("SAME, dilation 2", "SAME", 1, 2),
            ("explicit padding", ((1, 2), (0, 1)), 1, 1),
        ]
    ],
    row(
        "nn.conv2d",
        "lax.conv_general_dilated",
        normal(2, 4, 5, 4),
        FILTER,
        ours=lambda x, w: hr.nn.conv2d(x, w, strides=[1, 1, 1, 1], padding="SAME"),
        theirs=lambda x, w: _conv(x, w, feature_group_count=2),
        mode="groups",
    ),
    row(
        "nn.conv2d",
        "F.conv2d",
        normal(2, 2, 5, 6),
        FILTER,
        ours=lambda x, w: hr.nn.conv2d(x, w, [1, 1, 1, 1], "VALID", data_format="NCHW"),
        theirs=lambda x, w: F.conv2d(x, w.permute(3, 2, 0, 1)),
        mode="NCHW",
    ),
    row(
        "nn.conv3d",
        "lax.conv_general_dilated",
        normal(1, 4, 5, 4, 2),
        normal(2, 3, 2, 2, 3),
        ours=lambda x, w: hr.nn.conv3d(x, w, [1, 2, 1, 1, 1], "SAME"),
        theirs=lambda x, w: _conv(x, w, "SAME", (2, 1, 1)),
    ),
    row(
        "nn.convolution",
        "lax.conv_general_dilated",
        IMAGE,
        FILTER,
        ours=lambda x, w: hr.nn.convolution(x, w, "VALID", dilation_rate=[2, 1]),
        theirs=lambda x, w: _conv(x, w, "VALID", rhs_dilation=(2, 1)),
    ),
    row(
        "nn.atrous_conv2d",
        "lax.conv_general_dilated",
        IMAGE,
        FILTER,
        ours=lambda x, w: hr.nn.atrous_conv2d(x, w, 2, "SAME"),
        theirs=lambda x, w: _conv(x, w, "SAME", rhs_dilation=(2, 2)),
    ),
    row(
        "nn.depthwise_conv2d",
        "lax.conv_general_dilated",
        IMAGE,
        FILTER,
        ours=lambda x, w: hr.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME", rate=[2, 2]),
        theirs=lambda x, w: _depthwise(x, w, rhs_dilation=(2, 2)),
    ),
    row(
        "nn.depthwise_conv2d_native",
        "lax.conv_general_dilated",
        IMAGE,
        FILTER,
        ours=lambda x, w: hr.nn.depthwise_conv2d_native(x, w, [1, 2, 2, 1], "VALID"),
        theirs=lambda x, w: _depthwise(x, w, "VALID", 2),
    ),
    row(
        "nn.separable_conv2d",
        "lax.conv_general_dilated",
        IMAGE,
        normal(3, 2, 2, 2),
        normal(1, 1, 4, 3),
        ours=lambda x, w, v: hr.nn.separable_conv2d(x, w, v, [1, 1, 1, 1], "SAME"),
        theirs=lambda x, w, v: _conv(_depthwise(x, w), v),
    ),
    row(
        "nn.conv1d_transpose",
        "F.conv_transpose1d",
        normal(2, 4, 3),
        normal(3, 2, 3),
        ours=lambda x, w: hr.nn.conv1d_transpose(x, w, [2, 9, 2], 2, "VALID"),
        theirs=lambda x, w: _torch_transposed(x, w, 1, stride=2),
    ),
    row(
        "nn.conv2d_transpose",
        "F.conv_transpose2d",
        normal(2, 3, 4, 3),
        normal(3, 3, 2, 3),
        ours=lambda x, w: hr.nn.conv2d_transpose(x, w, [2, 6, 8, 2], [1, 2, 2, 1], "SAME"),
        # SAME pads an even image after, not before: PyTorch's output is one longer, then cut.
        theirs=lambda x, w: _torch_transposed(x, w, 2, stride=2)[:, :6, :8],
    ),
    row(
        "nn.conv3d_transpose",
        "F.conv_transpose3d",
        normal(1, 2, 3, 2, 3),
        normal(2, 2, 3, 2, 3),
        ours=lambda x, w: hr.nn.conv3d_transpose(x, w, [1, 4, 6, 5, 2], [1, 2, 2, 2, 1], "VALID"),
        theirs=lambda x, w: _torch_transposed(x, w, 3, stride=2),
    ),
    row(
        "nn.conv_transpose",
        "jax.vjp, lax.conv_general_dilated",
        normal(2, 3, 3, 4),
        FILTER,
        ours=lambda x, w: hr.nn.conv_transpose(x, w, [2, 5, 6, 2], [2, 2], "SAME"),
        theirs=lambda x, w: _transposed(x, w, "SAME", 2, (2, 5, 6, 2)),
    ),
    row(
        "nn.atrous_conv2d_transpose",
        "F.conv_transpose2d",
        normal(2, 3, 4, 3),
        normal(3, 2, 2, 3),
        ours=lambda x, w: hr.nn.atrous_conv2d_transpose(x, w, [2, 7, 6, 2], 2, "VALID"),
        theirs=lambda x, w: _torch_transposed(x, w, 2, dilation=2),
    ),
    row(
        "nn.conv2d_backprop_input",
        "jax.vjp, lax.conv_general_dilated",
        FILTER,
        normal(2, 3, 3, 4),
        ours=lambda w, dy: hr.nn.conv2d_backprop_input([2, 5, 6, 2], w, dy, [1, 2, 2, 1], "SAME"),
        theirs=lambda w, dy: _transposed(dy, w, "SAME", 2, (2, 5, 6, 2)),
    ),
    row(
        "nn.conv2d_backprop_filter",
        "jax.vjp, lax.conv_general_dilated",
        IMAGE,
        normal(2, 3, 3, 4),
        ours=lambda x, dy: hr.nn.conv2d_backprop_filter(x, [3, 2, 2, 4], dy, [1, 2, 2, 1], "SAME"),
        theirs=lambda x, dy: _for_filter(x, dy, (3, 2, 2, 4), 2),
    ),
    row(
        "nn.conv3d_backprop_filter",
        "jax.vjp, lax.conv_general_dilated",
        normal(1, 3, 4, 3, 2),
        normal(1, 3, 4, 3, 3),
        ours=lambda x, dy: hr.nn.conv3d_backprop_filter(
            x, [2, 2, 2, 2, 3], dy, [1, 1, 1, 1, 1], "SAME"
        ),
        theirs=lambda x, dy: _for_filter(x, dy, (2, 2, 2, 2, 3)),
    ),
    row(
        "nn.depthwise_conv2d_backprop_input",
        "jax.vjp, lax.conv_general_dilated",
        FILTER,
        normal(2, 5, 6, 8),
        ours=lambda w, dy: hr.nn.depthwise_conv2d_backprop_input(
            [2, 5, 6, 2], w, dy, [1, 1, 1, 1], "SAME"
        ),
        theirs=lambda w, dy: jax.vjp(lambda x: _depthwise(x, w), jnp.zeros((2, 5, 6, 2), w.dtype))[
            1
        ](dy)[0],
    ),
    row(
        "nn.depthwise_conv2d_backprop_filter",
        "jax.vjp, lax.conv_general_dilated",
        IMAGE,
        normal(2, 5, 6, 8),
        ours=lambda x, dy: hr.nn.depthwise_conv2d_backprop_filter(
            x, [3, 2, 2, 4], dy, [1, 1, 1, 1], "SAME"
        ),
        theirs=lambda x, dy: jax.vjp(lambda w: _depthwise(x, w), jnp.zeros((3, 2, 2, 4), x.dtype))[
            1
        ](dy)[0],
    ),
    row(
        "nn.max_pool",
        "lax.reduce_window",
        apart(2, 5, 6, 2),
        ours=lambda x: hr.nn.max_pool(x, [1, 3, 3, 1], [1, 2, 2, 1], "SAME"),
        theirs=lambda x: _max_window(x, 3, 2, "SAME"),
    ),
    row(
        "nn.max_pool1d",
        "F.max_pool1d",
        apart(2, 7, 2),
        ours=lambda x: hr.nn.max_pool1d(x, 3, 2, "VALID"),
        theirs=lambda x: _pool("max_pool1d", x, 3, 2),
    ),
    row(
        "nn.max_pool2d",
        "F.max_pool2d",
        apart(2, 5, 6, 2),
        ours=lambda x: hr.nn.max_pool2d(x, 2, 1, "VALID"),
        theirs=lambda x: _pool("max_pool2d", x, 2, 1),
    ),
    row(
        "nn.max_pool3d",
        "F.max_pool3d",
        apart(1, 4, 4, 5, 2),
        ours=lambda x: hr.nn.max_pool3d(x, 2, 2, "VALID"),
        theirs=lambda x: _pool("max_pool3d", x, 2, 2),
    ),
    row(
        "nn.max_pool_v2",
        "lax.reduce_window",
        apart(2, 5, 6, 2),
        ours=lambda x: hr.nn.max_pool_v2(x, 2, 2, "SAME"),
        theirs=lambda x: _max_window(x, 2, 2, "SAME"),
    ),
    row(
        "nn.max_pool_with_argmax",
        "F.max_pool2d",
        apart(2, 5, 6, 2),
        ours=lambda x: hr.nn.max_pool_with_argmax(x, 2, 2, "VALID")[0],
        theirs=lambda x: _pool("max_pool2d", x, 2, 2),
    ),
    row(
        "nn.avg_pool",
        "F.avg_pool2d",
        IMAGE,
        ours=lambda x: hr.nn.avg_pool(x, [1, 3, 3, 1], [1, 1, 1, 1], "SAME"),
        theirs=lambda x: _pool("avg_pool2d", x, 3, 1, 1, count_include_pad=False),
    ),
    row(
        "nn.avg_pool1d",
        "F.avg_pool1d",
        normal(2, 7, 2),
        ours=lambda x: hr.nn.avg_pool1d(x, 3, 2, "VALID"),
        theirs=lambda x: _pool("avg_pool1d", x, 3, 2),
    ),
    row(
        "nn.avg_pool3d",
        "F.avg_pool3d",
        normal(1, 4, 4, 5, 2),
        ours=lambda x: hr.nn.avg_pool3d(x, 2, 2, "VALID"),
        theirs=lambda x: _pool("avg_pool3d", x, 2, 2),
    ),
    row(
        "nn.avg_pool_v2",
        "F.avg_pool2d",
        IMAGE,
        ours=lambda x: hr.nn.avg_pool_v2(x, 2, 2, "VALID"),
        theirs=lambda x: _pool("avg_pool2d", x, 2, 2),
    ),
    row(
        "nn.pool",
        "F.max_pool2d",
        apart(2, 5, 6, 2),
        ours=lambda x: hr.nn.pool(x, [2, 2], "MAX", "VALID", dilation_rate=[2, 2]),
        theirs=lambda x: _pool("max_pool2d", x, 2, 1, dilation=2),
    ),
    row(
        "nn.dilation2d",
        "lax.conv_general_dilated_patches, jnp.max",
        normal(2, 4, 5, 2),
        normal(2, 3, 2),
        ours=lambda x, w: hr.nn.dilation2d(x, w, [1, 1, 1, 1], [1, 1, 1, 1], "VALID"),
        theirs=_dilation,
    ),
    row(
        "nn.erosion2d",
        "lax.conv_general_dilated_patches, jnp.max",
        normal(2, 4, 5, 2),
        normal(2, 3, 2),
        ours=lambda x, w: hr.nn.erosion2d(x, w, [1, 1, 1, 1], [1, 1, 1, 1], "VALID"),
        # Erosion is the dilation of the negative by the filter reflected.
        theirs=lambda x, w: _dilation(x, w[::-1, ::-1], -1.0),
    ),
    row(
        "image.extract_patches",
        "lax.conv_general_dilated_patches",
        IMAGE,
        ours=lambda x: hr.image.extract_patches(
            x, [1, 2, 3, 1], [1, 1, 2, 1], [1, 1, 1, 1], "VALID"
        ),
        # JAX has channels before places in the depth of a patch.
        theirs=lambda x: jnp.reshape(
            jnp.swapaxes(
                jnp.reshape(
                    lax.conv_general_dilated_patches(
                        x, (2, 3), (1, 2), "VALID", dimension_numbers=LAYOUTS[2]
                    ),
                    (2, 4, 2, 2, 6),
                ),
                3,
                4,
            ),
            (2, 4, 2, 12),
        ),
    ),
]
