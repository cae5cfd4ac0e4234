"""Scalar expressions: what elementwise ops compute of each element, as data for any compiler."""
