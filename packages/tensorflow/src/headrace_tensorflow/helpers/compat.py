"""``util.compat``: what TensorFlow imports there for several versions of Python."""

from collections import abc as collections_abc

__all__ = ["collections_abc"]
