"""Errors of input pipelines that are of two of Python's kinds, as TensorFlow's are."""

from __future__ import annotations

from headrace.errors import AttributeValueError, FailedPreconditionError


class NoInitializerError(FailedPreconditionError, ValueError):
    """The initializer of an iterator that has none."""


class UnknownOptionError(AttributeValueError, AttributeError):
    """An option of that name is not there."""
