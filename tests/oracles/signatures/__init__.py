"""Headrace's public names and their arguments beside those of TensorFlow 1.15."""
