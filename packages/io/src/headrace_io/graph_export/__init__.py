"""Graphs written as TensorFlow's: an operation of Headrace becomes a node that TensorFlow runs."""
