"""Rewrites: each takes a step's graph and returns a new one that computes the same."""
