"""Probability distributions: what draws from one, and what is known of it, as tensors."""
