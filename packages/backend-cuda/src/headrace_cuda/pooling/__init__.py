"""Pools of images on a GPU, by kernels of our own."""
