"""Convolutions on a GPU, by cuDNN."""
