"""Iterators as programs use them."""
