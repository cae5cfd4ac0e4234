"""Translations of ops of neural networks, and of the gradients that TensorFlow writes for them."""

from __future__ import annotations

from typing import Any

from headrace import Tensor
from headrace.errors import DocumentError
from headrace.extend.ops import call_op
from headrace.extend.translations import TranslationTable
from headrace_io.translation.library import hr

ROWS = TranslationTable()

_WINDOW = "strides padding data_format dilations"
for _name, _function in (
    ("Elu", hr.nn.elu),
    ("Relu", hr.nn.relu),
    ("Relu6", hr.nn.relu6),
    ("Selu", hr.nn.selu),
    ("Softplus", hr.nn.softplus),
    ("Softsign", hr.nn.softsign),
    ("Softmax", hr.nn.softmax),
    ("LogSoftmax", hr.nn.log_softmax),
    ("L2Loss", hr.nn.l2_loss),
):
    ROWS.call(_name, _function)
ROWS.call("LeakyRelu", hr.nn.leaky_relu, "alpha")
ROWS.call("BiasAdd", hr.nn.bias_add, "data_format")
ROWS.call("BiasAddV1", hr.nn.bias_add)
ROWS.call("LRN", hr.nn.lrn, "depth_radius bias alpha beta")
ROWS.call("InTopK", hr.nn.in_top_k, "k")
ROWS.call("InTopKV2", hr.nn.in_top_k)
ROWS.call("Conv3D", hr.nn.conv3d, _WINDOW)
ROWS.call("AvgPool", hr.nn.avg_pool, "ksize strides padding data_format")
ROWS.call("MaxPool", hr.nn.max_pool, "ksize strides padding data_format")
ROWS.call("AvgPool3D", hr.nn.avg_pool3d, "ksize strides padding data_format")
ROWS.call("MaxPool3D", hr.nn.max_pool3d, "ksize strides padding data_format")
ROWS.call("Dilation2D", hr.nn.dilation2d, "strides rates padding")
ROWS.call("Dequantize", hr.dequantize, "mode")
ROWS.call("QuantizeV2", hr.quantize, "T mode round_mode", outputs="output output_min output_max")
_LEVELS = "output min_output max_output"
ROWS.call("QuantizedAvgPool", hr.nn.quantized_avg_pool, "ksize strides padding", outputs=_LEVELS)
ROWS.call("QuantizedMaxPool", hr.nn.quantized_max_pool, "ksize strides padding", outputs=_LEVELS)
ROWS.call(
    "QuantizedConv2D",
    hr.nn.quantized_conv2d,
    "strides padding out_type dilations",
    outputs=_LEVELS,
)
ROWS.call(
    "QuantizedReluX",
    hr.nn.quantized_relu_x,
    "out_type",
    outputs="activations min_activations max_activations",
)


@ROWS.add("QuantizedConcat", outputs="output output_min output_max")
def _quantized_concat(node: Any) -> Any:
    count = (len(node.tensors) - 1) // 3
    axis, *rest = node.tensors
    return hr.quantized_concat(axis, rest[:count], rest[count : 2 * count], rest[2 * count :])


ROWS.call(
    "MaxPoolWithArgmax",
    hr.nn.max_pool_with_argmax,
    "ksize strides padding Targmax include_batch_in_index",
    outputs="output argmax",
)
ROWS.call("DepthwiseConv2dNative", hr.nn.depthwise_conv2d_native, _WINDOW)


def padding_of(node: Any) -> Any:
    """Return the padding of a window, in numbers where it is explicit."""
    found = node.text("padding")
    explicit = list(node.attr("explicit_paddings", ()))
    if found != "EXPLICIT":
        return found
    return [explicit[i : i + 2] for i in range(0, len(explicit), 2)]


def _windowed(node: Any) -> dict[str, Any]:
    data_format = node.text("data_format", "NHWC")
    return {
        "strides": list(node.attr("strides")),
        "padding": padding_of(node),
        "data_format": data_format,
        "dilations": list(node.attr("dilations", (1, 1, 1, 1))),
    }


@ROWS.add("Conv2D")
def _conv2d(node: Any) -> Any:
    return hr.nn.conv2d(node.tensor(0), node.tensor(1), **_windowed(node))


@ROWS.add("Conv2DBackpropInput")
def _conv2d_input(node: Any) -> Any:
    return hr.nn.conv2d_backprop_input(*node.tensors, **_windowed(node))


@ROWS.add("Conv2DBackpropFilter")
def _conv2d_filter(node: Any) -> Any:
    return hr.nn.conv2d_backprop_filter(*node.tensors, **_windowed(node))


@ROWS.add("DepthwiseConv2dNativeBackpropInput")
def _depthwise_input(node: Any) -> Any:
    return hr.nn.depthwise_conv2d_native_backprop_input(*node.tensors, **_windowed(node))


@ROWS.add("DepthwiseConv2dNativeBackpropFilter")
def _depthwise_filter(node: Any) -> Any:
    return hr.nn.depthwise_conv2d_native_backprop_filter(*node.tensors, **_windowed(node))


def _pool(node: Any) -> dict[str, Any]:
    data_format = node.text("data_format", "NHWC")
    spatial = slice(1, 3) if data_format == "NHWC" else slice(2, 4)
    return {
        "ksize": tuple(node.attr("ksize"))[spatial],
        "strides": tuple(node.attr("strides"))[spatial],
        "padding": node.text("padding"),
        "data_format": data_format,
    }


@ROWS.add("MaxPoolGrad")
def _max_pool_grad(node: Any) -> Any:
    value, _, grad = node.tensors
    return call_op("MaxPoolGrad", value, grad, **_pool(node))


@ROWS.add("AvgPoolGrad")
def _avg_pool_grad(node: Any) -> Any:
    return call_op("AvgPoolGrad", *node.tensors, **_pool(node))


_NORM = "y batch_mean batch_variance reserve_space_1 reserve_space_2 reserve_space_3"


@ROWS.add("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", outputs=_NORM)
def _batch_norm(node: Any) -> Any:
    x, scale, offset, mean, variance = node.tensors
    training = bool(node.attr("is_training", True))
    y, found_mean, found_variance = hr.nn.fused_batch_norm(
        x,
        scale,
        offset,
        None if training else mean,
        None if training else variance,
        epsilon=node.attr("epsilon", 1e-4),
        data_format=node.text("data_format", "NHWC"),
        is_training=training,
    )
    found = [y, found_mean, found_variance, found_mean, found_variance]
    return [*found, hr.zeros([0])] if node.op.endswith("V3") else found


_NORM_GRAD = "x_backprop scale_backprop offset_backprop reserve_space_4 reserve_space_5"  # as in V3


@ROWS.add("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3", outputs=_NORM_GRAD)
def _batch_norm_grad(node: Any) -> Any:
    """Differentiate batch normalization (Ioffe and Szegedy 2015, section 3)."""
    dy, x, scale, mean, variance = node.tensors[:5]
    epsilon = node.attr("epsilon", 1e-4)
    nchw = node.text("data_format", "NHWC") == "NCHW"
    axes = [0, 2, 3] if nchw else [0, 1, 2]
    training = bool(node.attr("is_training", True))

    def wide(channels: Tensor) -> Tensor:
        return hr.reshape(channels, [1, -1, 1, 1]) if nchw else channels

    if training:
        mean, variance = hr.nn.moments(hr.cast(x, hr.float32), axes)
    kind = x.dtype
    x, dy = hr.cast(x, hr.float32), hr.cast(dy, hr.float32)
    inverse = hr.rsqrt(variance + epsilon)
    centred = (x - wide(mean)) * wide(inverse)
    d_offset = hr.reduce_sum(dy, axes)
    d_scale = hr.reduce_sum(dy * centred, axes)
    dx = dy
    if training:
        count = hr.cast(hr.size(x) // hr.size(mean), hr.float32)
        dx = dy - wide(d_offset / count) - centred * wide(d_scale / count)
    dx = hr.cast(dx * wide(scale * inverse), kind)
    return [dx, d_scale, d_offset, hr.zeros([0]), hr.zeros([0])]


@ROWS.add("BatchNormWithGlobalNormalization")
def _batch_norm_global(node: Any) -> Any:
    t, m, v, beta, gamma = node.tensors
    scale = gamma if node.attr("scale_after_normalization") else None
    return hr.nn.batch_normalization(t, m, v, beta, scale, node.attr("variance_epsilon"))


@ROWS.add("SoftmaxCrossEntropyWithLogits", outputs="loss backprop")
def _softmax_loss(node: Any) -> Any:
    logits, labels = node.tensors
    loss = hr.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return [loss, hr.nn.softmax(logits) - labels]


@ROWS.add("SparseSoftmaxCrossEntropyWithLogits", outputs="loss backprop")
def _sparse_softmax_loss(node: Any) -> Any:
    logits, labels = node.tensors
    loss = hr.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    one = hr.one_hot(labels, hr.shape(logits)[-1], dtype=logits.dtype)
    return [loss, hr.nn.softmax(logits) - one]


@ROWS.add("BiasAddGrad")
def _bias_grad(node: Any) -> Any:
    dy = node.tensor(0)
    rank = dy.shape.rank
    if rank is None:
        raise DocumentError("the rank of its input is not known")
    channel = 1 if node.text("data_format", "NHWC") == "NCHW" else rank - 1
    return hr.reduce_sum(dy, [axis for axis in range(rank) if axis != channel])


@ROWS.add("ReluGrad", "Relu6Grad")
def _relu_grad(node: Any) -> Any:
    dy, features = node.tensors
    passes = features > 0
    if node.op == "Relu6Grad":
        passes = hr.logical_and(passes, features < 6)
    return hr.where_v2(passes, dy, hr.zeros_like(dy))


@ROWS.add("LeakyReluGrad")
def _leaky_relu_grad(node: Any) -> Any:
    dy, features = node.tensors
    return hr.where_v2(features > 0, dy, dy * node.attr("alpha", 0.2))


@ROWS.add("EluGrad")
def _elu_grad(node: Any) -> Any:
    dy, outputs = node.tensors
    return hr.where_v2(outputs < 0, dy * (outputs + 1), dy)


@ROWS.add("SeluGrad")
def _selu_grad(node: Any) -> Any:
    dy, outputs = node.tensors
    # The constants of Klambauer et al. 2017.
    scale, scaled_alpha = 1.0507009873554805, 1.7580993408473766
    return hr.where_v2(outputs < 0, dy * (outputs + scaled_alpha), dy * scale)


@ROWS.add("SoftplusGrad")
def _softplus_grad(node: Any) -> Any:
    dy, features = node.tensors
    return dy * hr.sigmoid(features)


@ROWS.add("SoftsignGrad")
def _softsign_grad(node: Any) -> Any:
    dy, features = node.tensors
    return dy / hr.square(1 + hr.abs(features))


@ROWS.add(
    "CTCGreedyDecoder", outputs="decoded_indices decoded_values decoded_shape log_probability"
)
def _ctc_greedy(node: Any) -> Any:
    repeated = bool(node.attr("merge_repeated", False))
    (found,), score = hr.nn.ctc_greedy_decoder(*node.tensors, merge_repeated=repeated)
    return [found.indices, found.values, found.dense_shape, score]


for _name in ("Uniform", "LogUniform"):
    ROWS.call(
        f"{_name}CandidateSampler",
        getattr(
            hr.nn,
            "uniform_candidate_sampler" if _name == "Uniform" else "log_uniform_candidate_sampler",
        ),
        "num_true num_sampled unique range_max",
        ignored="seed seed2",
        outputs="sampled_candidates true_expected_count sampled_expected_count",
    )
