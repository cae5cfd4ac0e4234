"""Graphs as versioned JSON documents: writing them, and reading those of strangers."""
