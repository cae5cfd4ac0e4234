"""Parsing examples: what programs ask for, and what stands in the bytes."""
