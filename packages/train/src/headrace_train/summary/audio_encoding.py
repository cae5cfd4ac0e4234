"""Audio summaries as WAV files of 16 bits.

References:
    Multimedia Programming Interface and Data Specifications 1.0, IBM and Microsoft, 1991: the
    chunks ``fmt`` and ``data`` of a RIFF file.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

_Array = np.ndarray[Any, np.dtype[Any]]

_PCM = 1
_SCALE = 32768.0


def wav(sound: _Array, sample_rate: int) -> bytes:
    """Return a sound as a WAV file.

    Args:
        sound: [frames, channels], floating, in [-1, 1]; what lies beyond is cut off.
        sample_rate: In Hz.
    """
    channels = sound.shape[1]
    scaled = np.clip(_rounded(np.nan_to_num(sound) * np.float32(_SCALE)), -_SCALE, _SCALE - 1)
    samples = scaled.astype("<i2").tobytes()
    frame = 2 * channels
    form = struct.pack("<HHIIHH", _PCM, channels, sample_rate, sample_rate * frame, frame, 16)
    chunks = b"fmt " + struct.pack("<I", len(form)) + form
    chunks += b"data" + struct.pack("<I", len(samples)) + samples
    return b"RIFF" + struct.pack("<I", len(chunks) + 4) + b"WAVE" + chunks


def _rounded(values: _Array) -> _Array:
    """Round halves away from zero, as C's ``round`` does."""
    rounded: _Array = np.trunc(values + np.copysign(values.dtype.type(0.5), values))
    return rounded
