"""Mistakes that programs make, with what Headrace says to each."""
