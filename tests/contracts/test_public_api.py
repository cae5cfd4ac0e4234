"""The names that programs rely on: they exist, and are called as promised."""

from __future__ import annotations

import inspect
from operator import attrgetter

import pytest

import headrace as hr

CORE = [
    "Graph",
    "get_default_graph",
    "Session",
    "Tensor",
    "as_dtype",
    "convert_to_tensor",
    "assign",
    "assign_add",
    "assign_sub",
    "Operation",
    "placeholder",
    "constant",
    "Variable",
    "global_variables_initializer",
    "control_dependencies",
    "device",
    "name_scope",
    "colocate_with",
    "zeros",
    "ones",
    "matmul",
    "reduce_mean",
    "reduce_sum",
    "log",
    "exp",
    "equal",
    "argmax",
    "cast",
    "reshape",
    "transpose",
    "concat",
    "gather",
    "switch",
    "merge",
    "group",
    "no_op",
    "nn.softmax",
    "nn.relu",
    "nn.conv2d",
    "nn.max_pool",
    "nn.softmax_cross_entropy_with_logits",
    "nn.sparse_softmax_cross_entropy_with_logits",
    "random_normal",
    "random_uniform",
    "truncated_normal",
    "float32",
    "float64",
    "int32",
    "int64",
    "bool",
    "string",
]

PLUGINS = {
    "autodiff": ["gradients"],
    "train": [
        "train.GradientDescentOptimizer",
        "train.MomentumOptimizer",
        "train.AdamOptimizer",
        "train.FIFOQueue",
        "train.Saver",
        "train.datasets.load_digits",
        "train.datasets.load_mnist",
        "train.latest_checkpoint",
    ],
    "dist-mpi": ["dist.Cluster"],
}


@pytest.mark.parametrize("name", CORE)
def test_core_name(name):
    assert attrgetter(name)(hr) is not None


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.needs(package), id=name)
        for package, names in PLUGINS.items()
        for name in names
    ],
)
def test_plugin_name(name):
    assert attrgetter(name)(hr) is not None


@pytest.mark.parametrize(
    ("function", "leading"),
    [
        (hr.Session, ["target", "graph", "config"]),
        (hr.Session.run, ["self", "fetches", "feed_dict"]),
        (hr.Session.make_callable, ["self", "fetches", "feed_list"]),
        (hr.placeholder, ["dtype", "shape", "name"]),
        (hr.constant, ["value", "dtype", "shape", "name"]),
        (hr.zeros, ["shape", "dtype", "name"]),
        (hr.Variable, ["initial_value", "trainable"]),
        (hr.matmul, ["a", "b", "transpose_a", "transpose_b"]),
        (hr.reduce_sum, ["input_tensor", "axis", "keepdims", "name"]),
        (hr.reduce_mean, ["input_tensor", "axis", "keepdims", "name"]),
        (hr.argmax, ["input", "axis", "name"]),
        (hr.cast, ["x", "dtype", "name"]),
        (hr.reshape, ["tensor", "shape", "name"]),
        (hr.transpose, ["a", "perm", "name"]),
        (hr.concat, ["values", "axis", "name"]),
        (hr.gather, ["params", "indices", "validate_indices", "name", "axis"]),
        (hr.nn.softmax, ["logits", "axis", "name"]),
        (hr.nn.conv2d, ["input", "filter", "strides", "padding"]),
        (hr.nn.max_pool, ["value", "ksize", "strides", "padding", "data_format", "name"]),
        (hr.nn.convolution, ["input", "filter", "padding", "strides", "dilation_rate", "name"]),
        (hr.nn.conv1d, ["value", "filters", "stride", "padding", "use_cudnn_on_gpu"]),
        (hr.nn.conv3d, ["input", "filter", "strides", "padding", "data_format", "dilations"]),
        (hr.nn.conv2d_transpose, ["value", "filter", "output_shape", "strides", "padding"]),
        (hr.nn.depthwise_conv2d, ["input", "filter", "strides", "padding", "rate", "name"]),
        (hr.nn.separable_conv2d, ["input", "depthwise_filter", "pointwise_filter", "strides"]),
        (hr.nn.avg_pool, ["value", "ksize", "strides", "padding", "data_format", "name"]),
        (hr.nn.pool, ["input", "window_shape", "pooling_type", "padding", "dilation_rate"]),
        (hr.nn.fused_batch_norm, ["x", "scale", "offset", "mean", "variance", "epsilon"]),
        (hr.nn.dropout, ["x", "keep_prob", "noise_shape", "seed", "name", "rate"]),
        (hr.image.resize_images, ["images", "size", "method", "align_corners"]),
        (hr.image.crop_and_resize, ["image", "boxes", "box_ind", "crop_size", "method"]),
        (hr.image.extract_image_patches, ["images", "ksizes", "strides", "rates", "padding"]),
        (hr.random_normal, ["shape", "mean", "stddev", "dtype", "seed", "name"]),
        (hr.random_uniform, ["shape", "minval", "maxval", "dtype", "seed", "name"]),
        (hr.truncated_normal, ["shape", "mean", "stddev", "dtype", "seed", "name"]),
        (hr.assign, ["ref", "value"]),
        (hr.where, ["condition", "x", "y", "name"]),
        (hr.clip_by_norm, ["t", "clip_norm", "axes", "name"]),
        (hr.clip_by_global_norm, ["t_list", "clip_norm", "use_norm", "name"]),
        (hr.betainc, ["a", "b", "x", "name"]),
        (hr.bitcast, ["input", "type", "name"]),
        (hr.accumulate_n, ["inputs", "shape", "tensor_dtype", "name"]),
        (hr.nn.crelu, ["features", "name", "axis"]),
    ],
    ids=lambda p: getattr(p, "__qualname__", None),
)
def test_leading_parameters(function, leading):
    assert list(inspect.signature(function).parameters)[: len(leading)] == leading


def test_public_functions_are_documented():
    missing = [
        name
        for name in hr.__all__
        if callable(getattr(hr, name)) and not (getattr(hr, name).__doc__ or "").strip()
    ]
    assert not missing


def test_all_is_sorted_and_complete():
    assert sorted(hr.__all__) == sorted(set(hr.__all__))
    assert all(hasattr(hr, name) for name in hr.__all__)


def test_unknown_names_are_pythons_own_error():
    with pytest.raises(AttributeError, match="headrace has no attribute 'nothing_of_the_kind'"):
        _ = hr.nothing_of_the_kind
