"""Reverse-mode differentiation of Headrace graphs."""
