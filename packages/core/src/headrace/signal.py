"""Signals: Fourier and cosine transforms, frames, windows and spectra, as ``hr.signal``."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from headrace.ops.fourier import fft as fft
from headrace.ops.fourier import fft2d as fft2d
from headrace.ops.fourier import fft3d as fft3d
from headrace.ops.fourier import ifft as ifft
from headrace.ops.fourier import ifft2d as ifft2d
from headrace.ops.fourier import ifft3d as ifft3d
from headrace.ops.fourier import irfft as irfft
from headrace.ops.fourier import irfft2d as irfft2d
from headrace.ops.fourier import irfft3d as irfft3d
from headrace.ops.fourier import rfft as rfft
from headrace.ops.fourier import rfft2d as rfft2d
from headrace.ops.fourier import rfft3d as rfft3d
from headrace.ops.frames import frame as frame
from headrace.ops.frames import overlap_and_add as overlap_and_add
from headrace.ops.signal_windows import hamming_window as hamming_window
from headrace.ops.signal_windows import hann_window as hann_window
from headrace.ops.signal_windows import inverse_stft_window_fn as inverse_stft_window_fn
from headrace.ops.spectra import dct as dct
from headrace.ops.spectra import fftshift as fftshift
from headrace.ops.spectra import idct as idct
from headrace.ops.spectra import ifftshift as ifftshift
from headrace.ops.spectra import inverse_stft as inverse_stft
from headrace.ops.spectra import linear_to_mel_weight_matrix as linear_to_mel_weight_matrix
from headrace.ops.spectra import mfccs_from_log_mel_spectrograms as mfccs_from_log_mel_spectrograms
from headrace.ops.spectra import stft as stft
from headrace.plugins.namespaces import added_names as _added_names

if not _TYPE_CHECKING:
    __getattr__, __dir__ = _added_names("signal", __name__)
