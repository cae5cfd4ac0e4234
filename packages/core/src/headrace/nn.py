"""Neural-network functions, as ``hr.nn``."""

import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING

from headrace import rnn_cell as rnn_cell
from headrace.ops.activation import crelu as crelu
from headrace.ops.activation import elu as elu
from headrace.ops.activation import gelu as gelu
from headrace.ops.activation import leaky_relu as leaky_relu
from headrace.ops.activation import relu as relu
from headrace.ops.activation import relu6 as relu6
from headrace.ops.activation import relu_layer as relu_layer
from headrace.ops.activation import selu as selu
from headrace.ops.activation import softplus as softplus
from headrace.ops.activation import softsign as softsign
from headrace.ops.activation import swish as silu
from headrace.ops.activation import swish as swish
from headrace.ops.blocks import depth_to_space as depth_to_space
from headrace.ops.blocks import space_to_batch as space_to_batch
from headrace.ops.blocks import space_to_depth as space_to_depth
from headrace.ops.candidate_sampling import all_candidate_sampler as all_candidate_sampler
from headrace.ops.candidate_sampling import compute_accidental_hits as compute_accidental_hits
from headrace.ops.candidate_sampling import (
    fixed_unigram_candidate_sampler as fixed_unigram_candidate_sampler,
)
from headrace.ops.candidate_sampling import (
    learned_unigram_candidate_sampler as learned_unigram_candidate_sampler,
)
from headrace.ops.candidate_sampling import (
    log_uniform_candidate_sampler as log_uniform_candidate_sampler,
)
from headrace.ops.candidate_sampling import uniform_candidate_sampler as uniform_candidate_sampler
from headrace.ops.convolution import atrous_conv2d as atrous_conv2d
from headrace.ops.convolution import conv1d as conv1d
from headrace.ops.convolution import conv2d as conv2d
from headrace.ops.convolution import conv2d_backprop_filter as conv2d_backprop_filter
from headrace.ops.convolution import conv2d_backprop_input as conv2d_backprop_input
from headrace.ops.convolution import conv3d as conv3d
from headrace.ops.convolution import conv3d_backprop_filter as conv3d_backprop_filter
from headrace.ops.convolution import conv3d_backprop_filter as conv3d_backprop_filter_v2
from headrace.ops.convolution import convolution as convolution
from headrace.ops.convolution_transpose import atrous_conv2d_transpose as atrous_conv2d_transpose
from headrace.ops.convolution_transpose import conv1d_transpose as conv1d_transpose
from headrace.ops.convolution_transpose import conv2d_transpose as conv2d_transpose
from headrace.ops.convolution_transpose import conv3d_transpose as conv3d_transpose
from headrace.ops.convolution_transpose import conv_transpose as conv_transpose
from headrace.ops.cross_entropy import log_poisson_loss as log_poisson_loss
from headrace.ops.cross_entropy import (
    sigmoid_cross_entropy_with_logits as sigmoid_cross_entropy_with_logits,
)
from headrace.ops.cross_entropy import (
    softmax_cross_entropy_with_logits as softmax_cross_entropy_with_logits,
)
from headrace.ops.cross_entropy import (
    softmax_cross_entropy_with_logits_v2 as softmax_cross_entropy_with_logits_v2,
)
from headrace.ops.cross_entropy import (
    sparse_softmax_cross_entropy_with_logits as sparse_softmax_cross_entropy_with_logits,
)
from headrace.ops.cross_entropy import (
    weighted_cross_entropy_with_logits as weighted_cross_entropy_with_logits,
)
from headrace.ops.ctc_functions import collapse_repeated as collapse_repeated
from headrace.ops.ctc_functions import ctc_beam_search_decoder as ctc_beam_search_decoder
from headrace.ops.ctc_functions import ctc_beam_search_decoder_v2 as ctc_beam_search_decoder_v2
from headrace.ops.ctc_functions import ctc_greedy_decoder as ctc_greedy_decoder
from headrace.ops.ctc_functions import ctc_loss as ctc_loss
from headrace.ops.ctc_functions import ctc_loss_v2 as ctc_loss_v2
from headrace.ops.ctc_functions import ctc_unique_labels as ctc_unique_labels
from headrace.ops.depthwise import depthwise_conv2d as depthwise_conv2d
from headrace.ops.depthwise import (
    depthwise_conv2d_backprop_filter as depthwise_conv2d_backprop_filter,
)
from headrace.ops.depthwise import (
    depthwise_conv2d_backprop_filter as depthwise_conv2d_native_backprop_filter,
)
from headrace.ops.depthwise import (
    depthwise_conv2d_backprop_input as depthwise_conv2d_backprop_input,
)
from headrace.ops.depthwise import (
    depthwise_conv2d_backprop_input as depthwise_conv2d_native_backprop_input,
)
from headrace.ops.depthwise import depthwise_conv2d_native as depthwise_conv2d_native
from headrace.ops.depthwise import dilation2d as dilation2d
from headrace.ops.depthwise import erosion2d as erosion2d
from headrace.ops.depthwise import separable_conv2d as separable_conv2d
from headrace.ops.embedding import embedding_lookup as embedding_lookup
from headrace.ops.embedding_sparse import embedding_lookup_sparse as embedding_lookup_sparse
from headrace.ops.embedding_sparse import (
    safe_embedding_lookup_sparse as safe_embedding_lookup_sparse,
)
from headrace.ops.fractional_pool import fractional_avg_pool as fractional_avg_pool
from headrace.ops.fractional_pool import fractional_max_pool as fractional_max_pool
from headrace.ops.nn import l2_loss as l2_loss
from headrace.ops.nn import log_softmax as log_softmax
from headrace.ops.nn import softmax as softmax
from headrace.ops.normalization import (
    batch_norm_with_global_normalization as batch_norm_with_global_normalization,
)
from headrace.ops.normalization import batch_normalization as batch_normalization
from headrace.ops.normalization import bias_add as bias_add
from headrace.ops.normalization import dropout as dropout
from headrace.ops.normalization import fused_batch_norm as fused_batch_norm
from headrace.ops.normalization import l2_normalize as l2_normalize
from headrace.ops.normalization import layer_norm as layer_norm
from headrace.ops.normalization import local_response_normalization as local_response_normalization
from headrace.ops.normalization import local_response_normalization as lrn
from headrace.ops.normalization import xw_plus_b as xw_plus_b
from headrace.ops.pooling import avg_pool as avg_pool
from headrace.ops.pooling import avg_pool as avg_pool2d
from headrace.ops.pooling import avg_pool1d as avg_pool1d
from headrace.ops.pooling import avg_pool3d as avg_pool3d
from headrace.ops.pooling import avg_pool_v2 as avg_pool_v2
from headrace.ops.pooling import max_pool as max_pool
from headrace.ops.pooling import max_pool1d as max_pool1d
from headrace.ops.pooling import max_pool2d as max_pool2d
from headrace.ops.pooling import max_pool3d as max_pool3d
from headrace.ops.pooling import max_pool_v2 as max_pool_v2
from headrace.ops.pooling import max_pool_with_argmax as max_pool_with_argmax
from headrace.ops.pooling import pool as pool
from headrace.ops.quantized_layers import quantized_avg_pool as quantized_avg_pool
from headrace.ops.quantized_layers import quantized_conv2d as quantized_conv2d
from headrace.ops.quantized_layers import quantized_max_pool as quantized_max_pool
from headrace.ops.quantized_layers import quantized_relu_x as quantized_relu_x
from headrace.ops.raw_rnn import raw_rnn as raw_rnn
from headrace.ops.raw_rnn import static_state_saving_rnn as static_state_saving_rnn
from headrace.ops.replica_losses import compute_average_loss as compute_average_loss
from headrace.ops.replica_losses import scale_regularization_loss as scale_regularization_loss
from headrace.ops.rnn import bidirectional_dynamic_rnn as bidirectional_dynamic_rnn
from headrace.ops.rnn import dynamic_rnn as dynamic_rnn
from headrace.ops.rnn import static_bidirectional_rnn as static_bidirectional_rnn
from headrace.ops.rnn import static_rnn as static_rnn
from headrace.ops.sampled_losses import nce_loss as nce_loss
from headrace.ops.sampled_losses import sampled_softmax_loss as sampled_softmax_loss
from headrace.ops.sharded_logits import sharded_logits as sharded_logits
from headrace.ops.sort import in_top_k as in_top_k
from headrace.ops.sort import top_k as top_k
from headrace.ops.space_batches import with_space_to_batch as with_space_to_batch
from headrace.ops.statistics import moments as moments
from headrace.ops.statistics import normalize_moments as normalize_moments
from headrace.ops.statistics import sufficient_statistics as sufficient_statistics
from headrace.ops.statistics import weighted_moments as weighted_moments
from headrace.ops.statistics import zero_fraction as zero_fraction
from headrace.ops.transcendental import sigmoid as sigmoid
from headrace.ops.transcendental import tanh as tanh
from headrace.plugins.namespaces import added_names as _added_names

if not _TYPE_CHECKING:
    __getattr__, __dir__ = _added_names("nn", __name__)

# For "from headrace.nn.rnn_cell import LSTMCell", though this module is no folder.
_sys.modules[f"{__name__}.rnn_cell"] = rnn_cell
