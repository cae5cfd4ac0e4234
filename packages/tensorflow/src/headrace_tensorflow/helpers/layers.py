"""``layers.convolutional`` and ``keras.engine.input_spec``: second names of layers."""

from __future__ import annotations

import headrace as hr

Convolution1D = hr.layers.Conv1D
Convolution2D = hr.layers.Conv2D
Convolution3D = hr.layers.Conv3D
Convolution2DTranspose = hr.layers.Conv2DTranspose
Convolution3DTranspose = hr.layers.Conv3DTranspose
SeparableConvolution1D = hr.layers.SeparableConv1D
SeparableConvolution2D = hr.layers.SeparableConv2D
InputSpec = hr.layers.InputSpec
