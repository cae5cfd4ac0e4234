"""Headrace's functions beside those of JAX and PyTorch: values and gradients."""
