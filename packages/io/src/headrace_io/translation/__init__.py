"""Graphs that TensorFlow wrote, built of Headrace's operations by a table of translations."""
