"""Graphs from messages: those that Headrace wrote, and TensorFlow's as far as ops are the same."""
