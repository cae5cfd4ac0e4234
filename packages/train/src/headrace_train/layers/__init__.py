"""Layers: functions of tensors with variables of their own, as ``hr.layers``."""

from __future__ import annotations

from headrace_train.layers.base import Layer as Layer
from headrace_train.layers.batch_normalization import BatchNormalization as BatchNormalization
from headrace_train.layers.batch_normalization import batch_normalization as batch_normalization
from headrace_train.layers.convolution import Conv1D as Conv1D
from headrace_train.layers.convolution import Conv2D as Conv2D
from headrace_train.layers.convolution import Conv3D as Conv3D
from headrace_train.layers.convolution import conv1d as conv1d
from headrace_train.layers.convolution import conv2d as conv2d
from headrace_train.layers.convolution import conv3d as conv3d
from headrace_train.layers.convolution_transpose import Conv2DTranspose as Conv2DTranspose
from headrace_train.layers.convolution_transpose import Conv3DTranspose as Conv3DTranspose
from headrace_train.layers.convolution_transpose import conv2d_transpose as conv2d_transpose
from headrace_train.layers.convolution_transpose import conv3d_transpose as conv3d_transpose
from headrace_train.layers.dense import Dense as Dense
from headrace_train.layers.dense import dense as dense
from headrace_train.layers.dropout import Dropout as Dropout
from headrace_train.layers.dropout import dropout as dropout
from headrace_train.layers.flatten import Flatten as Flatten
from headrace_train.layers.flatten import flatten as flatten
from headrace_train.layers.input_spec import InputSpec as InputSpec
from headrace_train.layers.pooling import AveragePooling1D as AveragePooling1D
from headrace_train.layers.pooling import AveragePooling2D as AveragePooling2D
from headrace_train.layers.pooling import AveragePooling3D as AveragePooling3D
from headrace_train.layers.pooling import MaxPooling1D as MaxPooling1D
from headrace_train.layers.pooling import MaxPooling2D as MaxPooling2D
from headrace_train.layers.pooling import MaxPooling3D as MaxPooling3D
from headrace_train.layers.pooling import average_pooling1d as average_pooling1d
from headrace_train.layers.pooling import average_pooling2d as average_pooling2d
from headrace_train.layers.pooling import average_pooling3d as average_pooling3d
from headrace_train.layers.pooling import max_pooling1d as max_pooling1d
from headrace_train.layers.pooling import max_pooling2d as max_pooling2d
from headrace_train.layers.pooling import max_pooling3d as max_pooling3d
from headrace_train.layers.regularizers import l1_l2_regularizer as l1_l2_regularizer
from headrace_train.layers.regularizers import l1_regularizer as l1_regularizer
from headrace_train.layers.regularizers import l2_regularizer as l2_regularizer
from headrace_train.layers.separable_convolution import SeparableConv1D as SeparableConv1D
from headrace_train.layers.separable_convolution import SeparableConv2D as SeparableConv2D
from headrace_train.layers.separable_convolution import separable_conv1d as separable_conv1d
from headrace_train.layers.separable_convolution import separable_conv2d as separable_conv2d

__all__ = [
    "AveragePooling1D",
    "AveragePooling2D",
    "AveragePooling3D",
    "BatchNormalization",
    "Conv1D",
    "Conv2D",
    "Conv2DTranspose",
    "Conv3D",
    "Conv3DTranspose",
    "Dense",
    "Dropout",
    "Flatten",
    "InputSpec",
    "Layer",
    "MaxPooling1D",
    "MaxPooling2D",
    "MaxPooling3D",
    "SeparableConv1D",
    "SeparableConv2D",
    "average_pooling1d",
    "average_pooling2d",
    "average_pooling3d",
    "batch_normalization",
    "conv1d",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "dense",
    "dropout",
    "flatten",
    "l1_l2_regularizer",
    "l1_regularizer",
    "l2_regularizer",
    "max_pooling1d",
    "max_pooling2d",
    "max_pooling3d",
    "separable_conv1d",
    "separable_conv2d",
]
