"""What programs add to their graphs to be told of tensors: ``hr.summary.scalar`` and others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import headrace as hr
from headrace import Tensor
from headrace.errors import ArgumentTypeError, AttributeValueError, shown
from headrace.extend.arguments import items
from headrace_io import protos
from headrace_train.summary import summaries
from headrace_train.summary.naming import clean_tag, summary_scope


def scalar(
    name: str, tensor: Any, collections: Sequence[Any] | None = None, family: str | None = None
) -> Tensor:
    """Tell of one number, which TensorBoard shows as a curve over the steps.

    Args:
        name: The summary's name; its tag has the name scopes around it, too.
        tensor: [], a real number.
        collections: The collections that the summary is added to; ``GraphKeys.SUMMARIES`` if None.
        family: What comes before the tag; TensorBoard groups by it.

    Returns:
        [], string, a serialized ``Summary``.

    Raises:
        InvalidArgumentError: if it is no scalar; when it runs, where that is known only then.
        DTypeError: if it is no real number.
    """
    with summary_scope(name, family, values=[tensor]) as (tag, scope):
        tags = hr.constant(tag, name="tags")
        made = summaries.scalar_summary(
            tags, hr.convert_to_tensor(tensor, name="values"), name=scope
        )
    return _collected(made, collections)


def histogram(
    name: str, values: Any, collections: Sequence[Any] | None = None, family: str | None = None
) -> Tensor:
    """Tell how the elements of a tensor are distributed.

    Args:
        name: The summary's name; its tag has the name scopes around it, too.
        values: [...], real.
        collections: The collections that the summary is added to; ``GraphKeys.SUMMARIES`` if None.
        family: What comes before the tag; TensorBoard groups by it.

    Returns:
        [], string, a serialized ``Summary``.

    Raises:
        DTypeError: if the elements are no real numbers.
        InvalidArgumentError: when it runs, if one is not finite.
    """
    with summary_scope(name, family, "HistogramSummary", [values]) as (given, scope):
        tag = hr.constant(given, name="tag")
        made = summaries.histogram_summary(
            tag, hr.convert_to_tensor(values, name="values"), name=scope
        )
    return _collected(made, collections)


def image(
    name: str,
    tensor: Any,
    max_outputs: int = 3,
    collections: Sequence[Any] | None = None,
    family: str | None = None,
) -> Tensor:
    """Tell of images.

    Images of uint8 are shown as they are. Floating ones are scaled, each by itself: where nothing
    is negative, so that the largest value is 255; else so that 0 is 128, and the value farthest
    from it 1 or 255. Pixels that are not finite are red.

    Args:
        name: The summary's name. The tags are ``name/image`` where ``max_outputs`` is 1, else
            ``name/image/0`` and so on.
        tensor: [batch, height, width, channels], uint8 or floating, with 1 (grey), 3 (RGB) or 4
            (RGBA) channels. What is no tensor is taken as float32.
        max_outputs: How many of the batch to tell of.
        collections: The collections that the summary is added to; ``GraphKeys.SUMMARIES`` if None.
        family: What comes before the tag; TensorBoard groups by it.

    Returns:
        [], string, a serialized ``Summary`` of PNG files.

    Raises:
        InvalidArgumentError: if it is no batch of images; when it runs, where that is known only
            then.
        DTypeError: if the dtype is another one.
    """
    with summary_scope(name, family, values=[tensor]) as (given, scope):
        tag = hr.constant(given, name="tag")
        dtype = None if _is_tensor(tensor) else hr.float32
        pixels = hr.convert_to_tensor(tensor, dtype, name="tensor")
        made = summaries.image_summary(tag, pixels, max_images=max_outputs, name=scope)
    return _collected(made, collections)


def audio(
    name: str,
    tensor: Any,
    sample_rate: Any,
    max_outputs: int = 3,
    collections: Sequence[Any] | None = None,
    family: str | None = None,
) -> Tensor:
    """Tell of sounds.

    Args:
        name: The summary's name. The tags are ``name/audio`` where ``max_outputs`` is 1, else
            ``name/audio/0`` and so on.
        tensor: [batch, frames] or [batch, frames, channels], float32, in [-1, 1]; what lies beyond
            is cut off.
        sample_rate: [], float32, in Hz.
        max_outputs: How many of the batch to tell of.
        collections: The collections that the summary is added to; ``GraphKeys.SUMMARIES`` if None.
        family: What comes before the tag; TensorBoard groups by it.

    Returns:
        [], string, a serialized ``Summary`` of WAV files.

    Raises:
        InvalidArgumentError: if it is no batch of sounds, or the rate is not positive; when it
            runs, where that is known only then.
    """
    with summary_scope(name, family, values=[tensor]) as (given, scope):
        rate = hr.convert_to_tensor(sample_rate, hr.float32, name="sample_rate")
        tag = hr.constant(given, name="tag")
        sound = hr.convert_to_tensor(tensor, hr.float32, name="tensor")
        made = summaries.audio_summary(tag, sound, rate, max_outputs=max_outputs, name=scope)
    return _collected(made, collections)


def text(name: str, tensor: Any, collections: Sequence[Any] | None = None) -> Tensor:
    """Tell of text, which TensorBoard shows as Markdown, and vectors and matrices as tables.

    Args:
        name: The summary's name; its tag has the name scopes around it, too.
        tensor: [...], string.
        collections: The collections that the summary is added to; ``GraphKeys.SUMMARIES`` if None.

    Returns:
        [], string, a serialized ``Summary``.

    Raises:
        AttributeValueError: if it is no text.
    """
    given = hr.convert_to_tensor(tensor)
    if given.dtype != hr.string:
        raise AttributeValueError(f"Expected tensor {given.name} to have dtype string, got {given}")
    metadata = protos.SummaryMetadata()
    metadata.plugin_data.plugin_name = "text"
    return tensor_summary(name, given, summary_metadata=metadata, collections=collections)


def tensor_summary(
    name: str,
    tensor: Any,
    summary_description: str | None = None,
    collections: Sequence[Any] | None = None,
    summary_metadata: Any = None,
    family: str | None = None,
    display_name: str | None = None,
) -> Tensor:
    """Tell of a tensor as it is, for a plugin of TensorBoard to show.

    Args:
        name: The summary's name; its tag has the name scopes around it, too.
        tensor: [...], of any dtype.
        summary_description: What it is about, in Markdown.
        collections: The collections that the summary is added to; ``GraphKeys.SUMMARIES`` if None.
        summary_metadata: A ``SummaryMetadata`` that names the plugin; description and display name
            are set in it.
        family: What comes before the tag; TensorBoard groups by it.
        display_name: What TensorBoard calls it in place of the tag.

    Returns:
        [], string, a serialized ``Summary``.
    """
    metadata = protos.SummaryMetadata() if summary_metadata is None else summary_metadata
    _state(metadata, "summary_description", summary_description)
    _state(metadata, "display_name", display_name)
    about = metadata.SerializeToString(deterministic=True)
    with summary_scope(name, family, values=[tensor]) as (given, scope):
        tag = hr.constant(given, name="tag")
        value = hr.convert_to_tensor(tensor, name="tensor")
        metadata_tensor = hr.constant(about, name="serialized_summary_metadata")
        made = summaries.tensor_summary(tag, value, metadata_tensor, name=scope)
    return _collected(made, collections)


def _state(metadata: Any, field: str, value: Any) -> None:
    if value is None:
        return
    try:
        setattr(metadata, field, value)
    except ValueError:
        # Bytes that are no UTF-8, or half of a character.
        raise AttributeValueError(f"{field} must be a text, got {shown(value)}") from None


def merge(
    inputs: Sequence[Any], collections: Sequence[Any] | None = None, name: str | None = None
) -> Tensor:
    """Join summaries.

    Args:
        inputs: Serialized summaries, one at least.
        collections: The collections that the result is added to; none if None.
        name: The name of the scope.

    Returns:
        [], string, a serialized ``Summary``.

    Raises:
        ArgumentTypeError: if it is no list.
        AttributeValueError: if there is none.
        InvalidArgumentError: when it runs, if two have one tag, or one is no summary.
    """
    if not isinstance(inputs, list | tuple):
        raise ArgumentTypeError(f"merge takes a list of one summary or more, got {shown(inputs)}")
    if not inputs:
        raise AttributeValueError(f"merge takes a list of one summary or more, got {shown(inputs)}")
    name = clean_tag(name)
    with hr.name_scope(name, "Merge", inputs):
        made = summaries.merge_summary(list(inputs), name=name or "MergeSummary")
    return _collected(made, [] if collections is None else collections)


def merge_all(
    key: Any = hr.GraphKeys.SUMMARIES, scope: str | None = None, name: str | None = None
) -> Tensor | None:
    """Join all summaries of the default graph.

    Args:
        key: The collection that they are in.
        scope: A regular expression for the beginning of the names of those to join; all if None.
        name: The name of the scope.

    Returns:
        [], string, a serialized ``Summary``; None where there is no summary.
    """
    found = hr.get_collection(key, scope)
    return merge(found, name=name) if found else None


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor | hr.Variable)


def _collected(made: Tensor, collections: Sequence[Any] | None) -> Tensor:
    chosen = [hr.GraphKeys.SUMMARIES] if collections is None else items(collections, "collections")
    for key in chosen:
        hr.add_to_collection(key, made)
    return made
