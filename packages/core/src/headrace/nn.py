"""Neural-network functions, as ``hr.nn``."""

from headrace.ops.conv import conv2d as conv2d
from headrace.ops.conv import max_pool as max_pool
from headrace.ops.elementwise import sigmoid as sigmoid
from headrace.ops.elementwise import tanh as tanh
from headrace.ops.nn import bias_add as bias_add
from headrace.ops.nn import l2_loss as l2_loss
from headrace.ops.nn import log_softmax as log_softmax
from headrace.ops.nn import relu as relu
from headrace.ops.nn import softmax as softmax
from headrace.ops.nn import softmax_cross_entropy_with_logits as softmax_cross_entropy_with_logits
from headrace.ops.nn import softplus as softplus
from headrace.ops.nn import (
    sparse_softmax_cross_entropy_with_logits as sparse_softmax_cross_entropy_with_logits,
)
