"""Positions of iterators as bytes, and what savers see of them."""
