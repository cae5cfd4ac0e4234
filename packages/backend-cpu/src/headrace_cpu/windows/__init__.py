"""Convolutions and pools of images without a library for them: generated loops and BLAS."""
