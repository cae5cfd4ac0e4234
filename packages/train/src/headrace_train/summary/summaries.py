"""Ops that tell of tensors: each yields a serialized ``Summary``, for an event file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

import headrace as hr
from headrace.errors import InvalidArgumentError
from headrace.extend.ops import (
    Anything,
    Floating,
    Kind,
    Real,
    Shape,
    Spec,
    String,
    TensorSpec,
    op,
    require,
)

_TEXT = "a summary is text"
_SUMMARY = TensorSpec(hr.string, Shape(()))
_PIXELS = ("uint8", "float16", "float32", "float64")
CHANNELS = (1, 3, 4)

Pixels: TypeAlias = Annotated[
    Any, Kind("uint8, float16, float32 or float64", lambda d: d.name in _PIXELS)
]


@op("ScalarSummary", public="", no_gradient=_TEXT)
def scalar_summary(tags: String, values: Real) -> Spec:
    """A number under a tag.

    Args:
        tags: [], the tag.
        values: [], a real number.

    Returns:
        [], string.
    """
    _check_scalar("tags", tags)
    if values.rank not in (None, 0):
        raise InvalidArgumentError(
            f"tags and values not the same shape: {tags.shape} != {values.shape}; a summary of a "
            "scalar takes one number, such as hr.reduce_mean(values)"
        )
    return _SUMMARY


@op("HistogramSummary", public="", no_gradient=_TEXT)
def histogram_summary(tag: String, values: Real) -> Spec:
    """How real numbers are distributed, under a tag.

    Args:
        tag: [], the tag.
        values: [...], real and finite; others raise when it runs.

    Returns:
        [], string.
    """
    _check_scalar("tag", tag)
    return _SUMMARY


@op("ImageSummary", public="", no_gradient=_TEXT)
def image_summary(tag: String, tensor: Pixels, max_images: int = 3) -> Spec:
    """Images, under a tag.

    Args:
        tag: [], the tag.
        tensor: [batch, height, width, channels], uint8 or floating, with 1, 3 or 4 channels.
        max_images: How many of the batch to tell of, at least 1.

    Returns:
        [], string.
    """
    _check_scalar("tag", tag)
    require(max_images >= 1, f"max_outputs must be >= 1, got {max_images}")
    known = tensor.shape.rank is not None
    if known and (tensor.rank != 4 or tensor.shape[3] not in (None, *CHANNELS)):
        raise InvalidArgumentError(wrong_image(tensor.shape))
    return _SUMMARY


@op("AudioSummaryV2", public="", no_gradient=_TEXT)
def audio_summary(
    tag: String, tensor: Floating, sample_rate: Floating, max_outputs: int = 3
) -> Spec:
    """Sounds, under a tag.

    Args:
        tag: [], the tag.
        tensor: [batch, frames] or [batch, frames, channels], float32, in [-1, 1].
        sample_rate: [], float32, in Hz.
        max_outputs: How many of the batch to tell of, at least 1.

    Returns:
        [], string.
    """
    _check_scalar("tag", tag)
    _check_scalar("sample_rate", sample_rate)
    require(max_outputs >= 1, f"max_outputs must be >= 1, got {max_outputs}")
    if tensor.rank not in (None, 2, 3):
        raise InvalidArgumentError(wrong_sound(tensor.shape))
    return _SUMMARY


@op("TensorSummaryV2", public="", no_gradient=_TEXT)
def tensor_summary(tag: String, tensor: Anything, serialized_summary_metadata: String) -> Spec:
    """A tensor, under a tag, with what says how to show it.

    Args:
        tag: [], the tag.
        tensor: [...], of any dtype.
        serialized_summary_metadata: [], a serialized ``SummaryMetadata``.

    Returns:
        [], string.
    """
    _check_scalar("tag", tag)
    _check_scalar("serialized_summary_metadata", serialized_summary_metadata)
    return _SUMMARY


@op("MergeSummary", public="", no_gradient=_TEXT)
def merge_summary(inputs: Sequence[String]) -> Spec:
    """Several summaries as one.

    Args:
        inputs: Serialized summaries, of any shapes. Tags that occur twice raise when it runs.

    Returns:
        [], string.
    """
    return _SUMMARY


def wrong_image(shape: object) -> str:
    """Return the message for what is no batch of images."""
    return f"a summary of images takes a 4-D tensor with last dim 1, 3, or 4, got shape {shape}"


def wrong_sound(shape: object) -> str:
    """Return the message for what is no batch of sounds."""
    return (
        "a summary of sounds takes a tensor [batch, frames] or [batch, frames, channels], got "
        f"shape {shape}"
    )


def _check_scalar(label: str, spec: TensorSpec) -> None:
    if spec.rank not in (None, 0):
        raise InvalidArgumentError(f"{label} must be a scalar, got shape {spec.shape}")
