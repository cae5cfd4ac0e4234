"""Calls of convolutions, pooling, samplers and other functions with many arguments."""

from __future__ import annotations

import headrace as hr
from headrace_testing.fuzz.arguments import Stored
from headrace_testing.fuzz.seeds.rows import real, seed
from headrace_testing.inputs import array, integers

ROWS = [
    seed("nn.conv1d", real(2, 7, 3), real(3, 3, 4), stride=1, padding="SAME"),
    seed("nn.conv2d", real(2, 5, 6, 3), real(3, 2, 3, 4), strides=[1, 2, 1, 1], padding="SAME"),
    seed(
        "nn.conv2d",
        real(2, 5, 6, 3),
        real(2, 2, 3, 4),
        [1, 1, 1, 1],
        "VALID",
        dilations=[1, 2, 1, 1],
    ),
    seed("nn.conv3d", real(1, 4, 5, 4, 2), real(2, 2, 2, 2, 3), [1, 1, 2, 1, 1], "SAME"),
    seed(
        "nn.conv2d_backprop_filter",
        real(2, 5, 6, 3),
        array([2, 2, 3, 4], "int32"),
        real(2, 5, 6, 4),
        [1, 1, 1, 1],
        "SAME",
    ),
    seed(
        "nn.conv2d_backprop_input",
        array([2, 5, 6, 3], "int32"),
        real(2, 2, 3, 4),
        real(2, 5, 6, 4),
        [1, 1, 1, 1],
        "SAME",
    ),
    seed("nn.conv2d_transpose", real(2, 3, 3, 4), real(2, 2, 3, 4), [2, 6, 6, 3], [1, 2, 2, 1]),
    seed("nn.atrous_conv2d", real(1, 6, 6, 2), real(2, 2, 2, 3), 2, "SAME"),
    seed("nn.max_pool", real(2, 5, 6, 3), [1, 2, 3, 1], [1, 2, 1, 1], "SAME"),
    seed("nn.max_pool1d", real(2, 7, 3), 2, 2, "VALID"),
    seed("nn.max_pool2d", real(2, 5, 6, 3), [2, 2], [2, 1], "SAME"),
    seed("nn.max_pool3d", real(1, 4, 5, 4, 2), [2, 2, 2], [1, 2, 1], "VALID"),
    seed("nn.avg_pool", real(2, 5, 6, 3), [1, 2, 3, 1], [1, 2, 1, 1], "SAME"),
    seed("nn.avg_pool1d", real(2, 7, 3), 2, 2, "VALID"),
    seed("nn.avg_pool2d", real(2, 5, 6, 3), [2, 2], [2, 1], "SAME"),
    seed("nn.avg_pool3d", real(1, 4, 5, 4, 2), [2, 2, 2], [1, 2, 1], "VALID"),
    seed(
        "nn.nce_loss",
        real(7, 3),
        real(7),
        array([[1], [6], [0], [1]], "int64"),
        real(4, 3),
        3,
        7,
    ),
    seed("nn.embedding_lookup", [real(3, 2), real(2, 2)], array([0, 4, 1], "int64"), "div"),
    seed("multinomial", real(2, 3), array(4, "int32")),
    seed("random.stateless_uniform", array([2, 3], "int32"), array([1, 2], "int32")),
    seed("random.stateless_normal", array([2, 3], "int32"), array([1, 2], "int32"), 1.0, 2.0),
    seed("random.stateless_truncated_normal", array([2, 3], "int32"), array([1, 2], "int64")),
    seed("random.stateless_multinomial", real(2, 3), array(4, "int32"), array([1, 2], "int32")),
    seed("random.stateless_categorical", real(2, 3), array(4, "int32"), array([1, 2], "int32")),
    seed("count_up_to", Stored(array(1, "int32")), 5),
    seed("assign_add", Stored(real(2, 3)), real(2, 3)),
    seed("ensure_shape", real(2, 3), [2, None]),
    seed("placeholder_with_default", real(2, 3), [None, 3]),
    seed("gather", real(3, 4), integers((2, 2), 0, 3), axis=1),
    seed("one_hot", integers((2, 3), 0, 4), array(4, "int32"), 2.0, -1.0, 0, hr.float32),
    seed("tile", real(2, 3), array([2, 1], "int32")),
    seed("sequence_mask", integers((2, 3), 0, 4), array(5, "int32")),
]
