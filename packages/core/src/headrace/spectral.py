"""Fourier and cosine transforms, as ``hr.spectral``; ``hr.signal`` has more."""

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
from headrace.ops.spectra import dct as dct
from headrace.ops.spectra import idct as idct
