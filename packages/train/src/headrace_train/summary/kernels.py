"""Kernels of summaries: what they tell is put into messages, and these are serialized."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import DataLossError, InvalidArgumentError
from headrace.extend import KernelTable
from headrace_io import protos
from headrace_io.tensor_protos import tensor_proto
from headrace_train.summary import summaries as summaries
from headrace_train.summary.audio_encoding import wav
from headrace_train.summary.histogram_buckets import fill
from headrace_train.summary.image_encoding import as_bytes, png

KERNELS = KernelTable()
_Array = np.ndarray[Any, np.dtype[Any]]


@KERNELS.plain("ScalarSummary")
def scalar(xp: Any, tags: Any, values: _Array) -> _Array:
    """Tell of a number."""
    tag = _text(tags)
    if np.ndim(values):
        raise InvalidArgumentError(
            f"tags and values not the same shape: [] != {list(np.shape(values))} (tag {tag!r}); a "
            "summary of a scalar takes one number, such as hr.reduce_mean(values)"
        )
    made = protos.Summary()
    with np.errstate(over="ignore"):
        made.value.add(tag=tag, simple_value=float(np.asarray(values).astype(np.float32)))
    return _serialized(made)


@KERNELS.plain("HistogramSummary")
def histogram(xp: Any, tag: Any, values: _Array) -> _Array:
    """Tell how numbers are distributed."""
    name = _text(tag)
    made = protos.Summary()
    fill(made.value.add(tag=name).histo, values, name)
    return _serialized(made)


@KERNELS.plain("ImageSummary")
def image(xp: Any, tag: Any, tensor: _Array, *, max_images: int) -> _Array:
    """Tell of images."""
    shape = np.shape(tensor)
    if len(shape) != 4 or shape[3] not in summaries.CHANNELS:
        raise InvalidArgumentError(summaries.wrong_image(list(shape)))
    if shape[0] and not all(shape):
        raise InvalidArgumentError(f"an image has one pixel at least, got shape {list(shape)}")
    made = protos.Summary()
    for name, pixels in _named(f"{_text(tag)}/image", tensor, max_images):
        found = made.value.add(tag=name).image
        found.height, found.width, found.colorspace = pixels.shape
        found.encoded_image_string = png(as_bytes(pixels))
    return _serialized(made)


@KERNELS.plain("AudioSummaryV2")
def audio(xp: Any, tag: Any, tensor: _Array, sample_rate: _Array, *, max_outputs: int) -> _Array:
    """Tell of sounds."""
    shape = np.shape(tensor)
    if len(shape) not in (2, 3):
        raise InvalidArgumentError(summaries.wrong_sound(list(shape)))
    rate = float(sample_rate)
    if not 0 < rate < 2**32:
        raise InvalidArgumentError(f"sample_rate must be > 0, in Hz, got {rate:g}")
    made = protos.Summary()
    for name, sound in _named(f"{_text(tag)}/audio", tensor, max_outputs):
        frames = sound.reshape(len(sound), -1) if sound.ndim == 2 else sound[:, None]
        found = made.value.add(tag=name).audio
        found.sample_rate = rate
        found.length_frames, found.num_channels = frames.shape
        found.encoded_audio_string = wav(frames, int(rate + 0.5))
        found.content_type = "audio/wav"
    return _serialized(made)


@KERNELS.plain("TensorSummaryV2")
def tensor(xp: Any, tag: Any, tensor: Any, serialized_summary_metadata: Any) -> _Array:
    """Tell of a tensor."""
    made = protos.Summary()
    value = made.value.add(tag=_text(tag))
    value.metadata.ParseFromString(_string(serialized_summary_metadata))
    value.tensor.CopyFrom(tensor_proto(tensor))
    return _serialized(made)


@KERNELS.plain("MergeSummary")
def merge(xp: Any, inputs: list[Any]) -> _Array:
    """Join summaries."""
    # lazy: protobuf is imported when a summary is first made
    from headrace_io.protos.pool import parsed

    made = protos.Summary()
    tags: set[str] = set()
    for text in (text for part in inputs for text in np.asarray(part, object).ravel().tolist()):
        try:
            found = parsed("Summary", text, "it")
        except DataLossError as error:
            raise InvalidArgumentError(
                f"Could not parse one of the summary inputs: {error}"
            ) from error
        for value in found.value:
            if value.tag in tags:
                raise InvalidArgumentError(
                    f"Duplicate tag {value.tag} found in summary inputs; give one of the summaries "
                    "another name"
                )
            tags.add(value.tag)
        made.MergeFrom(found)
    return _serialized(made)


def _named(prefix: str, batch: _Array, most: int) -> list[tuple[str, _Array]]:
    """Return the first of a batch with their tags, which are numbered where there may be more."""
    tags = [prefix] if most == 1 else [f"{prefix}/{i}" for i in range(most)]
    return list(zip(tags, batch, strict=False))


def _string(value: Any) -> bytes:
    found: bytes = np.asarray(value, object).item()
    return found


def _text(value: Any) -> str:
    return _string(value).decode(errors="replace")


def _serialized(message: Any) -> _Array:
    made = np.empty((), object)
    made[()] = message.SerializeToString(deterministic=True)
    return made
