"""Graphs as text and as pictures."""
